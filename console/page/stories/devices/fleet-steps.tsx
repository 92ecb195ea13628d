/** What devices run: a device reports its firmware, and a list shows the fleet and what is published for it. */
import { type Device, IotService } from "#gen/iot/iot_service_pb.ts";
import { sha256 } from "../../algorithms.ts";
import { reportEqual, sayExpected } from "../../checks.ts";
import { judge, send } from "../../parts/diagrams/sequence.ts";
import { type Column, RecordTable } from "../../parts/record-table.tsx";
import { checks, code, hint } from "../../parts/show.tsx";
import { step } from "../../story-step.ts";
import { formatMinute } from "../../time.ts";
import { loadList } from "../../tools/lists.ts";
import { formatNumber, toHex } from "../../values.ts";
import { authenticating, device, registering, server, vendor } from "./enrolment-steps.tsx";
import { imageBytes, installing, newVersion } from "./firmware-steps.tsx";
import { type Published, readPublished, showRoles } from "./published.tsx";

/** Maximum devices to read. */
const maxDevices = 10_000;
/** Devices to show: those that reported last. */
const shownDevices = 3;

const targetPath = "thermometer/firmware.bin";
const [delivered, installed] = [String(newVersion - 1), String(newVersion)];

export const reporting = step({
  title: "The device reports what it runs",
  action: "Report twice",
  why: `At each start, the device reports path, version and SHA-256 of its image: first version ${delivered}, as
    delivered, then version ${installed}, which it has installed. It uses its own token. The server cannot check
    what it runs.`,
  after: { authenticating, installing },
  run: async ({ call }, { authenticating: { token }, installing: { digest } }) => {
    const report = async (version: string, hash: Uint8Array) => {
      const request = { targetPath, version, firmwareHash: toHex(hash) };
      await call(IotService.method.reportFirmware, request, { token });
      return request;
    };
    await report(delivered, await sha256(crypto.getRandomValues(new Uint8Array(imageBytes))));
    return report(installed, digest);
  },
  says: ({ version }) => `The device reported version ${delivered}, and after the update version ${version}.`,
  shows: ({ firmwareHash }) => hint("SHA-256 of the second image: ", code(firmwareHash)),
  draws: () => [send(device, server, `runs version ${delivered}, then ${installed}`)],
});

export const listing = step({
  title: "The whole fleet in one list",
  action: "List devices and repositories",
  why: `It shows who runs an old image, or went back to one. Devices find images in repositories of The Update
    Framework (TUF), whose signed metadata expire.`,
  after: { registering, reporting },
  run: async (caller, { registering: { deviceId }, reporting: { version, firmwareHash } }) => {
    const { items, totalSize } = await loadList(
      (page) => caller.call(IotService.method.listDevices, page),
      ({ devices }) => devices,
      maxDevices,
    );
    const reported = items.find((one) => one.deviceId === deviceId)?.reportedFirmware;
    const isSame = reported?.version === version && reported.firmwareHash === firmwareHash;
    const hasPrevious = reported?.previousVersion === delivered;
    const devices = items.toSorted((one, other) => reportTime(other) - reportTime(one));
    return { devices, totalSize, isSame, hasPrevious, published: await readPublished(caller) };
  },
  says: ({ isSame, hasPrevious }) =>
    sayExpected(
      isSame && hasPrevious,
      `The list shows version ${installed}, and before it version ${delivered}.`,
      "The list shows different versions",
    ),
  shows: ({ devices, totalSize, isSame, published }) => [
    checks(reportEqual("the listed firmware, compared with the report", isSame)),
    <RecordTable
      key="fleet"
      label="Devices and their firmware"
      columns={fleetColumns(published)}
      rows={devices.slice(0, shownDevices)}
      identify={({ deviceId }) => deviceId}
    />,
    totalSize > shownDevices && hint(`And ${formatNumber(totalSize - shownDevices)} more devices.`),
    showRoles(published),
  ],
  draws: (value) => [
    send(server, vendor, "the fleet's versions", judge(value?.isSame, "as reported", "different")),
  ],
});

/** Seconds since 1970; 0 for a device that has not reported. */
function reportTime({ reportedFirmware }: Device): number {
  return Number(reportedFirmware?.reportedAt?.seconds ?? 0n);
}

function fleetColumns(published: readonly Published[] = []): readonly Column<Device>[] {
  const targets = published.flatMap(({ repository: { repository }, targets }) =>
    targets.map(({ sha256, path }) => [toHex(sha256), `${path} in ${repository}`] as const),
  );
  const targetOf = new Map(targets);
  return [
    { title: "Device", wraps: true, shows: ({ deviceName, deviceId }) => deviceName || deviceId },
    {
      title: "Runs",
      wraps: true,
      shows: ({ reportedFirmware }) => {
        if (reportedFirmware === undefined) return "not reported";
        const { version, previousVersion, firmwareHash } = reportedFirmware;
        const target = targetOf.get(firmwareHash);
        return [
          `version ${version || "unknown"}${previousVersion && `, was ${previousVersion}`}`,
          target && <span class="hint"> {target}</span>,
        ];
      },
    },
    { title: "Reported (UTC)", shows: ({ reportedFirmware }) => formatMinute(reportedFirmware?.reportedAt) },
  ];
}
