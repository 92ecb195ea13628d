import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ml_dsa44, ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { IotService, type ReportedFirmwareSchema } from "#gen/iot/iot_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { settings } from "../../page/settings.ts";
import * as enrolment from "../../page/stories/devices/enrolment-steps.tsx";
import * as firmware from "../../page/stories/devices/firmware-steps.tsx";
import { listing, reporting } from "../../page/stories/devices/fleet-steps.tsx";
import { alteringReading, measuring } from "../../page/stories/devices/page.tsx";
import { createFakeCaller, runStep } from "./fake-caller.ts";

/** Enables a service for one test. */
function enable({ typeName }: { readonly typeName: string }): void {
  settings.services.add(typeName);
  onTestFinished(() => void settings.services.delete(typeName));
}

const issuer = ml_dsa65.keygen();
const [header, payload] = [{ alg: "ML-DSA-65", kid: "issuer" }, { sub: "device-1" }].map((part) =>
  Buffer.from(JSON.stringify(part)).toString("base64url"),
);
const tokenSignature = ml_dsa65.sign(Buffer.from(`${header}.${payload}`), issuer.secretKey);
const token = `${header}.${payload}.${Buffer.from(tokenSignature).toString("base64url")}`;
const pub = Buffer.from(issuer.publicKey).toString("base64url");

const isSent = (header: Headers, token: string) => header.get("authorization") === token;

/**
 * A server that believes everybody with the right token: none before the log-in, then the device's own.
 *
 * @param privateKey included in the answer to a registration
 * @param hash the answered hash of any firmware
 */
function startServer({ privateKey, hash }: { privateKey?: Uint8Array; hash?: string } = {}) {
  return createFakeCaller(({ service }) => {
    service(IotService, {
      registerDevice({ publicKey = new Uint8Array(), signingContexts }) {
        expect(signingContexts).toBe(true);
        return { deviceId: "device-1", publicKey, ...(privateKey && { privateKey }) };
      },
      issueChallenge: () => ({ challenge: new Uint8Array(32) }),
      authenticate: (_request, { requestHeader }) => ({ authenticated: isSent(requestHeader, ""), token }),
      updateFirmware: ({ firmware, version }) => ({
        result: "FIRMWARE_ACCEPTED",
        reason: `version ${version}`,
        firmwareHash: hash ?? createHash("sha256").update(firmware).digest("hex"),
      }),
      sendTelemetry: (_request, { requestHeader }) => ({ verified: isSent(requestHeader, token) }),
    });
    service(TokenService, {
      getJwks: () => ({ keys: [{ kid: "issuer", kty: "AKP", alg: "ML-DSA-65", pub }] }),
    });
  });
}

const caller = startServer();
const keys = await runStep(enrolment.making, caller, {});
const registered = await runStep(enrolment.registering, caller, { making: keys, name: "Pump" });
const authenticated = await runStep(enrolment.authenticating, caller, { registering: registered });
const given = { registering: registered, authenticating: authenticated };
const sent = await runStep(measuring, caller, { ...given, text: "grüße" }, { current: 0 });

it("registering detects a secret key in the answer", async () => {
  const leaking = startServer({ privateKey: new Uint8Array(32) });
  const found = await runStep(enrolment.registering, leaking, { making: keys, name: "Pump" });
  expect(found).toMatchObject({ hasNoSecret: false });
});

describe("authenticating", () => {
  it("signs the challenge with its own context", () => {
    expect(authenticated.verdicts).toEqual({ server: true, browser: true });
    const { challenge, signature } = authenticated;
    expect(ml_dsa44.verify(signature, challenge, keys.device.publicKey)).toBe(false);
  });

  it("detects that a different device signed", async () => {
    const { verdicts } = await runStep(enrolment.pretending, caller, given);
    expect(verdicts).toEqual({ server: true, browser: false });
  });
});

describe("reading", () => {
  it("leaves the signature unchecked if no keys are published", async () => {
    const found = await runStep(enrolment.reading, caller, given);
    expect(found.isSigned).toBeUndefined();
  });

  it("detects that the token is for a different device", async () => {
    const other = { ...registered, deviceId: "device-2" };
    const found = await runStep(enrolment.reading, caller, { ...given, registering: other });
    expect(found).toMatchObject({ isSubject: false });
  });
});

describe("readings", () => {
  it.each([0, 1])("are signed after their 8-byte number, which follows %i", async (current) => {
    const { signed, verdicts } = await runStep(measuring, caller, { ...given, text: "grüße" }, { current });
    const expected = Buffer.from(`\0\0\0\0\0\0\0${String.fromCharCode(current + 1)}grüße`);
    expect(Buffer.from(signed)).toEqual(expected);
    expect(verdicts).toEqual({ server: true, browser: true });
  });

  it("are found changed, even if the server disagrees", async () => {
    const { verdicts } = await runStep(alteringReading, caller, { ...given, measuring: sent });
    expect(verdicts).toEqual({ server: true, browser: false });
  });
});

describe("firmware", () => {
  it("from a different vendor is found to be signed by that vendor", async () => {
    const found = await runStep(firmware.impersonating, caller, given);
    expect(found).toMatchObject({ isVendors: false, isOthers: true });
  });

  it("with one bit changed is found not to be signed", async () => {
    const installed = await runStep(firmware.installing, caller, given);
    const changed = await runStep(firmware.altering, caller, { ...given, installing: installed });
    expect(changed).toMatchObject({ isSameHash: true, isVendors: false });
  });

  it("hashed differently by the server is found to be different", async () => {
    const found = await runStep(firmware.installing, startServer({ hash: "0".repeat(64) }), given);
    expect(found).toMatchObject({ isSameHash: false });
  });
});

const digest = new Uint8Array(32).fill(7);
const installed = { version: "2", firmwareHash: "07".repeat(32) };
const fleet = { registering: { deviceId: "device-1" }, reporting: installed };

/** A server with a device that reported, and one that did not. */
function startFleet(reportedFirmware: MessageInitShape<typeof ReportedFirmwareSchema>) {
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
  const { caller, reports } = startFleet({});
  const given = { authenticating: { token: "token" }, installing: { digest } };
  expect(await runStep(reporting, caller, given)).toMatchObject(installed);
  expect(reports).toEqual([
    { version: "1", firmwareHash: expect.stringMatching(/^(?!0707)[0-9a-f]{64}$/), by: "token" },
    { ...installed, by: "token" },
  ]);
});

it("the fleet begins with the devices that reported last, and is compared with the report", async () => {
  const { caller } = startFleet({ ...installed, previousVersion: "1" });
  const found = await runStep(listing, caller, fleet);
  expect(found).toMatchObject({ isSame: true, hasPrevious: true, totalSize: 2, published: undefined });
  expect(found.devices.map(({ deviceId }) => deviceId)).toEqual(["device-1", "device-2"]);
});

it.each([
  ["version", { version: "1" }],
  ["hash", { firmwareHash: "08".repeat(32) }],
])("a different %s in the list is detected", async (_what, changed) => {
  const { caller } = startFleet({ ...installed, ...changed });
  expect(await runStep(listing, caller, fleet)).toMatchObject({ isSame: false, hasPrevious: false });
});

it("repositories are read if the server has them: the first to expire first, without drafts and damaged ones", async () => {
  enable(RepositoryService);
  const { caller, calls } = startFleet(installed);
  const { published = [] } = await runStep(listing, caller, fleet);
  expect(published.map(({ repository }) => repository.repository)).toEqual(["plant", "new"]);
  expect(calls.toSorted()).toEqual(["new", "plant"]);
  expect(published[0]?.targets.map(({ path }) => path)).toEqual(["app.bin"]);
});
