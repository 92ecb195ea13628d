import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it, onTestFinished } from "vitest";
import { IotService, type ReportedFirmwareSchema } from "#gen/iot/iot_service_pb.ts";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { settings } from "../../page/settings.ts";
import { listing, reporting } from "../../page/stories/devices/fleet-steps.tsx";
import { createFakeCaller, runStep } from "./fake-caller.ts";

const digest = new Uint8Array(32).fill(7);
const installed = { version: "2", firmwareHash: "07".repeat(32) };
const given = { registering: { deviceId: "device-1" }, reporting: installed };

/** A server with a device that reported, and one that did not. */
function startServer(reportedFirmware: MessageInitShape<typeof ReportedFirmwareSchema>) {
  const reportedAt = timestampFromMs(1000);
  const reports: unknown[] = [];
  const calls: string[] = [];
  const caller = createFakeCaller(({ service }) => {
    service(IotService, {
      reportFirmware: ({ version, firmwareHash }, { requestHeader }) => {
        reports.push({ version, firmwareHash, by: requestHeader.get("authorization") });
        return {};
      },
      listDevices: () => ({
        devices: [
          { deviceId: "device-2" },
          { deviceId: "device-1", reportedFirmware: { ...reportedFirmware, reportedAt } },
        ],
        totalSize: 2,
      }),
    });
    service(RepositoryService, {
      listRepositories: () => ({
        repositories: [
          { repository: "new" },
          { repository: "damaged", damaged: true },
          { repository: "plant", expiresAt: reportedAt },
        ],
      }),
      getRepository: ({ repository }) => {
        calls.push(repository);
        return { repository: { repository, roles: [{ role: "root", version: 1 }] } };
      },
      listTargets: () => ({
        targets: [
          { path: "app.bin", sha256: digest, targetStatus: "PUBLISHED" },
          { path: "next.bin", targetStatus: "DRAFT" },
        ],
      }),
    });
  });
  return { caller, reports, calls };
}

it("a device reports the delivered image, then the installed one", async () => {
  const { caller, reports } = startServer({});
  const given = { authenticating: { token: "token" }, installing: { digest } };
  expect(await runStep(reporting, caller, given)).toMatchObject(installed);
  expect(reports).toEqual([
    { version: "1", firmwareHash: expect.stringMatching(/^(?!0707)[0-9a-f]{64}$/), by: "token" },
    { ...installed, by: "token" },
  ]);
});

it("the fleet begins with the devices that reported last, and is compared with the report", async () => {
  const { caller } = startServer({ ...installed, previousVersion: "1" });
  const found = await runStep(listing, caller, given);
  expect(found).toMatchObject({ isSame: true, hasPrevious: true, totalSize: 2, published: undefined });
  expect(found.devices.map(({ deviceId }) => deviceId)).toEqual(["device-1", "device-2"]);
});

it.each([
  ["version", { version: "1" }],
  ["hash", { firmwareHash: "08".repeat(32) }],
])("a different %s in the list is detected", async (_what, changed) => {
  const { caller } = startServer({ ...installed, ...changed });
  expect(await runStep(listing, caller, given)).toMatchObject({ isSame: false, hasPrevious: false });
});

it("repositories are read if the server has them: the first to expire first, without drafts and damaged ones", async () => {
  settings.services.add(RepositoryService.typeName);
  onTestFinished(() => void settings.services.delete(RepositoryService.typeName));
  const { caller, calls } = startServer(installed);
  const { published = [] } = await runStep(listing, caller, given);
  expect(published.map(({ repository }) => repository.repository)).toEqual(["plant", "new"]);
  expect(calls.toSorted()).toEqual(["new", "plant"]);
  expect(published[0]?.targets.map(({ path }) => path)).toEqual(["app.bin"]);
});
