import { createHash, createPrivateKey, createPublicKey, randomFillSync } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createLocalJWKSet, jwtVerify } from "jose";
import { expect, it, onTestFinished } from "vitest";
import {
  AuthenticateRequestSchema,
  type StreamTelemetryRequestSchema,
  UpdateFirmwareRequestSchema,
  type UpdateFirmwareStreamRequestSchema,
} from "#gen/iot/iot_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { Schema } from "../../src/database/schema.ts";
import { systemPrincipal } from "../../src/records/ownership.ts";
import { openTable } from "../../src/records/record-table.ts";
import { intact } from "../../src/records/table-declaration.ts";
import { authenticateDevice } from "../../src/services/iot/authenticate.ts";
import { makeChallenge } from "../../src/services/iot/challenges.ts";
import { updateFirmware } from "../../src/services/iot/firmware.ts";
import { createIotStore } from "../../src/services/iot/store.ts";
import { challengeTable } from "../../src/services/iot/tables.ts";
import { createReadingChecks } from "../../src/services/iot/telemetry.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { openStore } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { failureOf, refusal } from "../support/refusal.ts";
import {
  damaged,
  fieldInvalid,
  invalid,
  keyInvalid,
  lengthInvalid,
  wrongKey,
  wrongLength,
} from "../support/refusals.ts";
import { createOutgoing, streamOf } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { expectTimeSince } from "../support/times.ts";
import { present } from "./answers.ts";
import {
  connectTo,
  describeApp,
  describeReplicas,
  findListed,
  type IotClient,
  startApp,
  type TestApp,
} from "./devices-and-tunnels.ts";
import { makeSigner, rawOf, type Signer, sha256, verifiesOutside } from "./node-crypto.ts";
import {
  noSuchDevice,
  type OwnDevice,
  readingOf,
  reasonsOf,
  registerOwn,
  respond,
  signedReading,
  telemetry,
} from "./own-device.ts";

const timeout = 180_000;
const notFound = { code: "NotFound", reason: "DEVICE_NOT_FOUND" };
const refusedByRule = { code: "InvalidArgument" };

/** Registers a device and authenticates it. */
async function authenticate(iot: IotClient, device: OwnDevice) {
  return iot.authenticate(await respond(iot, device));
}

/** Reads the rows of a device's challenges. */
function readChallenges({ tamper }: TestApp, deviceId: string) {
  return tamper((db) =>
    db.selectFrom("iot_challenges").selectAll().where("device_id", "=", deviceId).execute(),
  );
}

describeApp("iot.IotService.RegisterDevice", ({ iot }) => {
  it.each(["publicKey", "publicKeyPem"] as const)(
    "accepts the device's own %s, and returns no private key",
    async (field) => {
      const signer = makeSigner("ml-dsa-44");
      const answer = await iot.registerDevice({ deviceName: "meter", [field]: signer[field] });
      expect(answer.publicKeyPem).toBe(signer.publicKeyPem);
      expect(answer.publicKey).toEqual(signer.publicKey);
      expect(answer.privateKey).toBeUndefined();
    },
  );

  it("generates a pair whose 32-byte seed yields the public key", async () => {
    const { privateKey, publicKey } = await iot.registerDevice({});
    const key = Buffer.from(present(privateKey));
    const imported = createPrivateKey({ key, format: "raw-seed", asymmetricKeyType: "ml-dsa-44" });
    expect(rawOf(createPublicKey(imported))).toEqual(Uint8Array.from(publicKey));
  });

  it("keeps a simulated device's seed secret, and signs only as such a device", async () => {
    const { deviceId, privateKey, publicKeyPem } = await iot.registerDevice({ simulated: true });
    expect(privateKey).toBeUndefined();
    const { signature } = await iot.simulatedSign({ deviceId, data: telemetry });
    expect(verifiesOutside(publicKeyPem, telemetry, signature)).toBe(true);
    const { deviceId: real } = await iot.registerDevice({});
    expect(await refusal(iot.simulatedSign({ deviceId: real, data: telemetry }))).toEqual({
      code: "FailedPrecondition",
      reason: "DEVICE_NOT_SIMULATED",
    });
  });

  const { publicKey, publicKeyPem } = makeSigner("ml-dsa-44");
  const other = makeSigner("ml-dsa-65");
  it.each([
    ["a key one byte short", { publicKey: publicKey.subarray(1) }, wrongKey("publicKey")],
    ["a key of a different algorithm", { publicKey: other.publicKey }, wrongKey("publicKey")],
    ["a PEM key of a different algorithm", { publicKeyPem: other.publicKeyPem }, wrongKey("publicKeyPem")],
    ["text that is not PEM", { publicKeyPem: "no key" }, wrongKey("publicKeyPem")],
    ["a vendor key with the device algorithm", { vendorPublicKey: publicKey }, wrongKey("vendorPublicKey")],
    ["a vendor's PEM key with it", { vendorPublicKeyPem: publicKeyPem }, wrongKey("vendorPublicKeyPem")],
    ["its key raw and as PEM", { publicKey, publicKeyPem }, refusedByRule],
    ["its own key for a simulated device", { simulated: true, publicKey }, refusedByRule],
  ])("rejects %s", async (_what, request, expected) => {
    expect(await refusal(iot.registerDevice(request))).toMatchObject(expected);
  });
});

describeApp("a challenge in the store", ({ shared }) => {
  const forgeries: Record<string, (own: string) => Partial<Schema["iot_challenges"]>> = {
    "unused again": () => ({ used_at_ms: null }),
    "owned by another device": (own) => ({ device_id: own }),
    "alive again": () => ({ expires_at_ms: Date.now() + 3_600_000 }),
  };

  it.each(Object.entries(forgeries))(
    "rejects a challenge that was tampered with to be %s",
    async (_what, forge) => {
      const app = await shared();
      const [issued, own] = [await registerOwn(app.iot), await registerOwn(app.iot)];
      const response = await respond(app.iot, issued);
      await app.iot.authenticate(response);
      const change = forge(own.deviceId);
      await app.tamper((db) =>
        db.updateTable("iot_challenges").set(change).where("device_id", "=", issued.deviceId).execute(),
      );
      const { deviceId, sign } = "device_id" in change ? own : issued;
      const { challenge } = response;
      const call = app.iot.authenticate({ deviceId, challenge, signature: sign(challenge) });
      expect(await refusal(call)).toEqual(damaged);
    },
  );

  it("rejects a used challenge whose earlier row was restored in the store", async () => {
    const app = await shared();
    const device = await registerOwn(app.iot);
    const response = await respond(app.iot, device);
    const rows = await readChallenges(app, device.deviceId);
    expect(await app.iot.authenticate(response)).toMatchObject({ authenticated: true });
    await app.tamper(async (db) => {
      await db.deleteFrom("iot_challenges").where("device_id", "=", device.deviceId).execute();
      await db.insertInto("iot_challenges").values(rows).execute();
    });
    expect(await app.iot.authenticate(response)).toMatchObject({ reason: "CHALLENGE_USED" });
  });
});

describeApp("iot.IotService.IssueChallenge and Authenticate", ({ iot, rest, shared }) => {
  /** Moves the expiry of a device's challenges back in time, as the server would have written it then. */
  async function ageChallenges({ config }: TestApp, deviceId: string, ageMs: number): Promise<void> {
    const provider = await createCryptoProvider("openssl");
    const store = await openStore({ ...storeSettings(config), provider });
    const challenges = openTable(store, challengeTable);
    const found = await challenges.findSome("deviceId", [deviceId]);
    for (const { record } of found) {
      const expiresAt = new Date(record.expiresAt.getTime() - ageMs);
      await store.write((transaction) => challenges.update(transaction, intact(record), { expiresAt }));
    }
    await store.close();
    await provider.close();
  }

  it("issues fresh bytes that are valid for 60 seconds, and stores only their hash", async () => {
    const app = await shared();
    const { deviceId } = await registerOwn(app.iot);
    const beforeMs = Date.now();
    const [first, second] = [
      await app.iot.issueChallenge({ deviceId }),
      await app.iot.issueChallenge({ deviceId }),
    ];
    expect(second.challenge).not.toEqual(first.challenge);
    expectTimeSince(beforeMs, first.expiresAt, 60_000);
    const rows = await readChallenges(app, deviceId);
    const hashes = [first, second].map(({ challenge }) => sha256(challenge));
    expect(rows.map(({ challenge_hash }) => challenge_hash).sort()).toEqual(hashes.sort());
    const clear = Buffer.from(first.challenge);
    for (const encoding of ["hex", "base64", "base64url"] as const)
      expect(JSON.stringify(rows)).not.toContain(clear.toString(encoding));
  });

  it("authenticates a device once, with a token whose subject is the device", async () => {
    const device = await registerOwn(iot);
    const response = await respond(iot, device);
    const { authenticated, reason, token, expiresAt } = await iot.authenticate(response);
    expect([authenticated, reason]).toEqual([true, ""]);
    const { json } = await rest("GET /api/auth/jwks");
    const keySet = createLocalJWKSet(json as unknown as Parameters<typeof createLocalJWKSet>[0]);
    const { payload } = await jwtVerify(present(token), keySet);
    expect(payload.sub).toBe(device.deviceId);
    expect(payload.exp).toBe(timestampDate(present(expiresAt)).getTime() / 1000);
    const again = await iot.authenticate(response);
    expect(again).toMatchObject({ authenticated: false, reason: "CHALLENGE_USED" });
    expect([again.token, again.expiresAt]).toEqual([undefined, undefined]);
  });

  it("rejects another device's challenge, which that device can still use", async () => {
    const [owner, thief] = [await registerOwn(iot), await registerOwn(iot)];
    const response = await respond(iot, owner);
    const { challenge } = response;
    const stolen = { deviceId: thief.deviceId, challenge, signature: thief.sign(challenge) };
    const { authenticated, reason, token } = await iot.authenticate(stolen);
    expect({ authenticated, reason, token }).toEqual({ authenticated: false, reason: "CHALLENGE_FOREIGN" });
    expect(await iot.authenticate(response)).toMatchObject({ authenticated: true });
  });

  it.each([
    ["has expired", 60_000, "CHALLENGE_EXPIRED"],
    ["is from the future, as after a clock was set back", -3_600_000, "CHALLENGE_EXPIRED"],
    ["is about to expire", 30_000, ""],
    ["expired more than an hour ago and was forgotten", 2 * 3_600_000, "CHALLENGE_UNKNOWN"],
  ])("returns the right reason for a challenge that %s", async (_what, ageMs, expected) => {
    const app = await shared();
    const device = await registerOwn(app.iot);
    const response = await respond(app.iot, device);
    await ageChallenges(app, device.deviceId, ageMs);
    await app.iot.issueChallenge({ deviceId: device.deviceId });
    const { authenticated, reason, token } = await app.iot.authenticate(response);
    const isAccepted = expected === "";
    expect([authenticated, token !== undefined, reason]).toEqual([isAccepted, isAccepted, expected]);
  });

  it("uses up a challenge on a wrong signature, but not on one of the wrong length", async () => {
    const response = await respond(iot, await registerOwn(iot));
    const short = iot.authenticate({ ...response, signature: new Uint8Array(2419) });
    expect(await refusal(short)).toEqual(wrongLength("signature"));
    const wrong = { ...response, signature: flipBit(response.signature) };
    expect(await iot.authenticate(wrong)).toMatchObject({
      authenticated: false,
      reason: "SIGNATURE_INVALID",
    });
    expect(await iot.authenticate(response)).toMatchObject({ reason: "CHALLENGE_USED" });
  });
});

describeApp("iot.IotService.SendTelemetry", ({ iot }) => {
  it("requires the telemetry and the sequence to be what was signed", async () => {
    const device = await registerOwn(iot);
    const [plain, counted] = [readingOf(device), readingOf(device, 7)];
    const { sequence: _, ...uncounted } = counted;
    const forged = { verified: false, reason: "SIGNATURE_INVALID" };
    for (const reading of [
      { ...plain, telemetry: flipBit(telemetry) },
      { ...plain, sequence: 7 },
      { ...counted, sequence: 8 },
      uncounted,
    ])
      expect(await iot.sendTelemetry(reading)).toMatchObject(forged);
    expect((await findListed(iot, device.deviceId)).lastSeenAt).toBeUndefined();
    expect(await iot.sendTelemetry(counted)).toMatchObject({ verified: true, reason: "" });
    expect(await findListed(iot, device.deviceId)).toMatchObject({ readingForm: "NUMBERED" });
  });

  it.each([
    ["an unknown device", { deviceId: noSuchDevice }, notFound],
    ["a signature of the wrong length", { signature: new Uint8Array(1) }, wrongLength("signature")],
    ["a sequence that is not whole", { sequence: 1.5 }, invalid("sequence")],
  ])("rejects %s", async (_what, change, expected) => {
    const reading = { ...readingOf(await registerOwn(iot)), ...change };
    expect(await refusal(iot.sendTelemetry(reading))).toEqual(expected);
  });
});

describeApp("iot.IotService.UpdateFirmware", ({ iot }) => {
  const image = bytesOf("firmware, version 7");
  const changed = flipBit(image);
  const [vendor, otherVendor] = [makeSigner("ml-dsa-87"), makeSigner("ml-dsa-87")];
  /** Firmware signed by a vendor, with the vendor's key. */
  const firmwareOf = ({ publicKey, sign } = vendor, firmware = image) => ({
    firmware,
    signature: sign(Buffer.from(sha256(firmware), "hex")),
    vendorPublicKey: publicKey,
  });
  const rejected = (reason: string) => ({ result: "FIRMWARE_REJECTED", reason });
  const accepted = { result: "FIRMWARE_ACCEPTED", reason: "", firmwareHash: sha256(image) };

  const firmware = firmwareOf();
  const { vendorPublicKey: _, ...keyless } = firmware;
  const ofImage = { ...firmware, signature: vendor.sign(image) };
  it.each([
    ["signed firmware for no particular device", firmware, accepted],
    ["the vendor's key as PEM", { ...keyless, vendorPublicKeyPem: vendor.publicKeyPem }, accepted],
    ["a modified image", { ...firmware, firmware: changed }, rejected("SIGNATURE_INVALID")],
    ["a signature over the image itself instead of its hash", ofImage, rejected("SIGNATURE_INVALID")],
  ])("returns the right result for %s", async (_what, request, expected) => {
    expect(await iot.updateFirmware(request)).toMatchObject(expected);
  });

  it("accepts for a device only what its pinned vendor signed", async () => {
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const foreign = firmwareOf(otherVendor);
    const forged = { ...firmware, deviceId, signature: foreign.signature };
    expect(await iot.updateFirmware(forged)).toMatchObject(rejected("SIGNATURE_INVALID"));
    expect(await iot.updateFirmware({ ...foreign, deviceId })).toMatchObject(rejected("VENDOR_MISMATCH"));
    expect((await findListed(iot, deviceId)).firmwareHash).toBeUndefined();
    expect(await iot.updateFirmware({ ...keyless, deviceId })).toMatchObject(accepted);
  });

  it("gets one version if updates with and without one race", async () => {
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const older = firmwareOf(vendor, changed);
    const updates = [{ ...firmware, version: 1 }, ...Array(9).fill(older)];
    await Promise.all(updates.map((update) => iot.updateFirmware({ ...update, deviceId })));
    const { firmwareHash } = accepted;
    expect(await findListed(iot, deviceId)).toMatchObject({ firmwareVersion: 1, firmwareHash });
  });

  it("keeps the installed version when firmware is rejected", async () => {
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    await iot.updateFirmware({ ...firmware, deviceId, version: 5 });
    const older = iot.updateFirmware({ ...firmwareOf(vendor, changed), deviceId, version: 4 });
    expect(await older).toMatchObject(rejected("VERSION_ROLLBACK"));
    const { firmwareHash } = accepted;
    expect(await findListed(iot, deviceId)).toMatchObject({ firmwareVersion: 5, firmwareHash });
  });

  const { publicKeyPem: vendorPublicKeyPem } = vendor;
  it.each([
    ["an unknown device", { ...firmware, deviceId: noSuchDevice }, notFound],
    ["a vendor key of the wrong length", { ...firmware, vendorPublicKey: new Uint8Array(2591) }, keyInvalid],
    ["a signature of the wrong length", { ...firmware, signature: new Uint8Array(4626) }, lengthInvalid],
    ["neither a key nor a device", keyless, refusedByRule],
    ["a version without a device", { ...firmware, version: 1 }, refusedByRule],
    ["a key raw and as PEM", { ...firmware, vendorPublicKeyPem }, refusedByRule],
  ])("rejects %s", async (_what, request, expected) => {
    expect(await refusal(iot.updateFirmware(request))).toMatchObject(expected);
  });
});

describeApp("iot.IotService.ReportFirmware", ({ iot }) => {
  const report = { targetPath: "meter/firmware.bin", version: "3", firmwareHash: "ab".repeat(32) };
  /** A registered device with the headers of its token. */
  const makeDevice = async (iot: IotClient) => {
    const device = await registerOwn(iot);
    const { token = "" } = await authenticate(iot, device);
    return { ...device, headers: { authorization: `Bearer ${token}` } };
  };

  it("records what the device that calls says, and shows it in the list", async () => {
    const [{ deviceId, headers }, other] = [await makeDevice(iot), await makeDevice(iot)];
    const { reportedAt } = await iot.reportFirmware(report, { headers });
    const { reportedFirmware, lastSeenAt, firmwareVersion } = await findListed(iot, deviceId);
    expect(reportedFirmware).toMatchObject({ ...report, reportedAt, previousVersion: "" });
    expect([lastSeenAt, firmwareVersion]).toEqual([reportedAt, undefined]);
    expect((await findListed(iot, other.deviceId)).reportedFirmware).toBeUndefined();
  });

  it("records a lower version, and shows the version before", async () => {
    const { deviceId, headers } = await makeDevice(iot);
    const afterReports = async (...versions: string[]) => {
      for (const version of versions) await iot.reportFirmware({ ...report, version }, { headers });
      return (await findListed(iot, deviceId)).reportedFirmware;
    };
    expect(await afterReports("3", "2", "2")).toMatchObject({ version: "2", previousVersion: "3" });
    expect(await afterReports("")).toMatchObject({ version: "", previousVersion: "2" });
  });

  it("requires a device token, even on an open server", async () => {
    const missing = { code: "Unauthenticated", reason: "TOKEN_MISSING" };
    expect(await refusal(iot.reportFirmware(report))).toEqual(missing);
  });
});

describeApp("iot.IotService.RemoveDevice", ({ iot, shared, start, tamper }) => {
  const vendor = makeSigner("ml-dsa-87");
  const image = { firmware: telemetry, signature: vendor.sign(Buffer.from(sha256(telemetry), "hex")) };

  it("makes the device unknown to every call, with what it prepared before", async () => {
    const device = await registerOwn(iot, vendor.publicKey);
    const { deviceId } = device;
    const { token } = await authenticate(iot, device);
    const headers = { authorization: `Bearer ${present(token)}` };
    const response = await respond(iot, device);
    // The server now has the device in its cache.
    expect(await iot.sendTelemetry(readingOf(device, 1))).toMatchObject({ verified: true });
    const report = { targetPath: "pump/image", firmwareHash: sha256(telemetry) };
    const removed = { status: "success", deviceId, registrationStatus: "REMOVED" };
    expect(await iot.removeDevice({ deviceId })).toMatchObject(removed);
    const header = { deviceId, signature: image.signature };
    const calls = [
      iot.issueChallenge({ deviceId }),
      iot.authenticate(response),
      iot.sendTelemetry(readingOf(device, 2)),
      iot.sendTelemetry({ ...readingOf(device, 3), ...tampered }),
      iot.updateFirmware({ deviceId, ...image }),
      iot.updateFirmwareStream(streamOf({ part: { case: "header" as const, value: header } })),
      iot.removeDevice({ deviceId }),
    ];
    for (const refused of await Promise.all(calls.map(refusal))) expect(refused).toEqual(notFound);
    const revoked = { code: "Unauthenticated", reason: "TOKEN_REVOKED" };
    expect(await refusal(iot.reportFirmware(report, { headers }))).toEqual(revoked);
  });

  it("deletes the device's record and its sealed key, and no others", async () => {
    const app = await start();
    const { deviceId } = await app.iot.registerDevice({ simulated: true });
    const { deviceId: kept } = await app.iot.registerDevice({ simulated: true });
    const readNames = () => app.tamper((db) => db.selectFrom("sealed_secrets").select("identity").execute());
    await app.iot.removeDevice({ deviceId });
    expect(await refusal(app.iot.simulatedSign({ deviceId, data: telemetry }))).toEqual(notFound);
    expect(await app.iot.listDevices({})).toMatchObject({ devices: [{ deviceId: kept }], totalSize: 1 });
    const names = JSON.stringify(await readNames());
    expect([names.includes(kept), names.includes(deviceId)]).toEqual([true, false]);
    await app.iot.simulatedSign({ deviceId: kept, data: telemetry });
  });

  it("removes even a damaged device", async () => {
    const { deviceId } = await registerOwn(iot);
    await tamper((db) =>
      db.updateTable("iot_devices").set({ device_name: "x" }).where("device_id", "=", deviceId).execute(),
    );
    await iot.removeDevice({ deviceId });
    expect(await refusal(iot.issueChallenge({ deviceId }))).toEqual(notFound);
  });

  it("reaches open streams, which continue for other devices", async () => {
    const [lost, other] = [await registerReader(iot), await registerReader(iot)];
    const outgoing = createOutgoing<ReadingRequest>();
    const answers = iot.streamTelemetry(outgoing)[Symbol.asyncIterator]();
    const reasonOf = async (reading: ReadingRequest) => {
      outgoing.send(reading);
      return present((await answers.next()).value).reason;
    };
    expect(await reasonOf(lost.reading(1))).toBe("");
    await iot.removeDevice({ deviceId: lost.deviceId });
    expect(await reasonOf(lost.reading(2))).toBe("DEVICE_NOT_FOUND");
    expect(await reasonOf(lost.reading(3, tampered))).toBe("DEVICE_NOT_FOUND");
    expect(await reasonOf(other.reading(1))).toBe("");
    outgoing.end();
  });

  it.each<[string, (deps: never, device: OwnDevice, challenge: Uint8Array) => Promise<unknown>]>([
    [
      "an answer to a challenge",
      (deps, { deviceId, sign }, challenge) =>
        authenticateDevice(
          deps,
          create(AuthenticateRequestSchema, { deviceId, challenge, signature: sign(challenge) }),
        ),
    ],
    ["a reading", (deps, device) => createReadingChecks(deps).check(readingOf(device), systemPrincipal)],
    [
      "firmware",
      (deps, { deviceId }) => {
        const { firmware, ...header } = create(UpdateFirmwareRequestSchema, { deviceId, ...image });
        const { signal } = new AbortController();
        return updateFirmware(deps, header, [firmware], { principal: systemPrincipal, signal });
      },
    ],
  ])("refuses %s if the device is removed while the signature is verified", async (_what, use) => {
    const { config } = await shared();
    const device = await registerOwn(iot, vendor.publicKey);
    const { challenge } = await iot.issueChallenge(device);
    const crypto = await createCryptoProvider("openssl");
    const store = await openStore({ ...storeSettings(config), provider: crypto });
    onTestFinished(async () => {
      await store.close();
      await crypto.close();
    });
    const devices = createIotStore(store);
    const verify = async () => {
      await iot.removeDevice(device);
      return true;
    };
    const provider = { importPublicKey: () => ({}), verify };
    const deps = { provider, store, devices, now: () => new Date() };
    expect(await refusal(use(deps as never, device, challenge))).toEqual(notFound);
  });
});

describeReplicas("iot.IotService.RemoveDevice through one of two servers", (startTwo) => {
  it("takes effect on the other at once, although it knows the device", async () => {
    const [one, two] = await startTwo();
    const device = await registerOwn(one.iot);
    const { token } = await authenticate(two.iot, device);
    const headers = { authorization: `Bearer ${present(token)}` };
    expect(await two.iot.sendTelemetry(readingOf(device, 1))).toMatchObject({ verified: true });
    await one.iot.removeDevice(device);
    expect(await refusal(two.iot.sendTelemetry(readingOf(device, 2)))).toEqual(notFound);
    expect(await refusal(two.iot.issueChallenge(device))).toEqual(notFound);
    const report = { targetPath: "pump/image", firmwareHash: sha256(telemetry) };
    expect((await refusal(two.iot.reportFirmware(report, { headers }))).reason).toBe("TOKEN_REVOKED");
  });
});

describeApp("iot.IotService.ListDevices", ({ iot, start }) => {
  it("shows everything known about a device, and omits what it never did", async () => {
    const { publicKey } = makeSigner("ml-dsa-44");
    const request = { deviceName: "meter 0", deviceType: "meter", publicKey };
    const { deviceId } = await iot.registerDevice(request);
    const listed = await findListed(iot, deviceId);
    expect(listed).toMatchObject({ ...request, registrationStatus: "REGISTERED", simulated: false });
    expect([listed.lastSeenAt, listed.firmwareVersion, listed.firmwareHash]).toEqual(
      Array(3).fill(undefined),
    );
  });

  it.each<[string, (iot: IotClient, device: OwnDevice) => Promise<unknown>]>([
    ["authenticated", authenticate],
    ["sent a reading", (iot, device) => iot.sendTelemetry(readingOf(device))],
  ])("shows when a device last %s", async (_deed, act) => {
    const device = await registerOwn(iot);
    const response = await respond(iot, device);
    await iot.authenticate({ ...response, signature: device.sign(telemetry) });
    expect((await findListed(iot, device.deviceId)).lastSeenAt).toBeUndefined();
    const beforeMs = Date.now();
    await act(iot, device);
    expectTimeSince(beforeMs, (await findListed(iot, device.deviceId)).lastSeenAt);
  });

  it("keeps devices, sequences and simulated keys across a restart", async () => {
    const first = await start();
    const device = await registerOwn(first.iot);
    const { deviceId, publicKeyPem } = await first.iot.registerDevice({ simulated: true });
    await first.iot.sendTelemetry(readingOf(device, 9));
    await first.close();
    const { iot } = await start(first.database);
    expect(await iot.getHealth({})).toMatchObject({ serviceStatus: "UP", deviceCount: 2 });
    expect(await iot.sendTelemetry(readingOf(device, 9))).toMatchObject({ reason: "SEQUENCE_OLD" });
    const { signature } = await iot.simulatedSign({ deviceId, data: telemetry });
    expect(verifiesOutside(publicKeyPem, telemetry, signature)).toBe(true);
  });
});

describePostgres("iot.IotService.GetHealth and vpn.VpnService.GetHealth", () => {
  it("are DOWN, without counts, while the database is down", { timeout }, async () => {
    const postgres = await startPostgres({ durable: false });
    onTestFinished(() => postgres.close());
    const databaseUrl = await postgres.createDatabase();
    const database = ["--data-dir", makeTemporaryDirectory(), "--database-url", databaseUrl];
    const { rest } = await startApp({ database: async () => database, atEnd: onTestFinished });
    await postgres.stop();
    const isDown = { status: "success", serviceStatus: "DOWN" };
    const hasAlgorithms = { mlDsa44Available: true, mlDsa87Available: true };
    expect((await rest("GET /api/iot/health")).json).toEqual({ ...isDown, ...hasAlgorithms });
    expect((await rest("GET /api/vpn/health")).json).toMatchObject(isDown);
  });
});

describeReplicas("iot.IotService on two servers", (startTwo) => {
  it("authenticates one of 64 callers that race with one challenge", async () => {
    const apps = await startTwo();
    const response = await respond(apps[1].iot, await registerOwn(apps[0].iot));
    const calls = Array.from({ length: 64 }, (_, i) => apps[i % 2 ? 1 : 0].iot.authenticate(response));
    const reasons = (await Promise.all(calls)).map(({ reason }) => reason);
    expect(reasons.sort()).toEqual(["", ...Array(63).fill("CHALLENGE_USED")]);
  });

  it("accepts each sequence at most once, and ends with the highest", async () => {
    const apps = await startTwo();
    const [{ iot }] = apps;
    const device = await registerOwn(iot);
    const readings = Array.from({ length: 32 }, (_, i) => readingOf(device, i));
    const answers = await Promise.all(
      apps.flatMap((app) => readings.map((reading) => app.iot.sendTelemetry(reading))),
    );
    const accepted = answers.flatMap(({ verified }, i) => (verified ? [i % 32] : []));
    expect(new Set(accepted).size).toBe(accepted.length);
    expect(accepted).toContain(31);
    expect(await iot.sendTelemetry(readingOf(device, 31))).toMatchObject({ reason: "SEQUENCE_OLD" });
  });
});

type Part = MessageInitShape<typeof UpdateFirmwareStreamRequestSchema>;
type Header = Extract<NonNullable<Part["part"]>, { case: "header" }>["value"];
type ReadingRequest = MessageInitShape<typeof StreamTelemetryRequestSchema>;

const mebibyte = 1024 * 1024;
const vendor = makeSigner("ml-dsa-87");

const header = (value: Header): Part => ({ part: { case: "header", value } });
const chunk = (value: Uint8Array<ArrayBuffer>): Part => ({ part: { case: "chunk", value } });

/** Sends items, then stalls without ending until the test has finished. */
async function* stalled<Item>(...items: Item[]): AsyncGenerator<Item> {
  yield* items;
  await new Promise<void>((resolve) => onTestFinished(() => resolve()));
}

/** Returns an image of this many identical 1 MiB chunks. */
function imageOf(mebibytes: number) {
  const one = new Uint8Array(mebibyte);
  randomFillSync(one);
  const hash = createHash("sha256");
  for (let i = 0; i < mebibytes; i++) hash.update(one);
  const digest = hash.digest();
  return {
    firmwareHash: digest.toString("hex"),
    async *stream(value: Header = {}): AsyncGenerator<Part> {
      yield header({ vendorPublicKey: vendor.publicKey, signature: vendor.sign(digest), ...value });
      for (let i = 0; i < mebibytes; i++) yield chunk(one);
    },
  };
}

const image = bytesOf("firmware, version 7");
/** The header of the small image. */
const headerOf = (value: Header = {}, { publicKey, sign }: Signer = vendor): Part =>
  header({ vendorPublicKey: publicKey, signature: sign(Buffer.from(sha256(image), "hex")), ...value });

async function registerPinned({ registerDevice }: IotClient): Promise<string> {
  return (await registerDevice({ vendorPublicKey: vendor.publicKey })).deviceId;
}

describeApp("iot.IotService.UpdateFirmwareStream", ({ iot, shared }) => {
  it.each([
    ["in one chunk", [image]],
    ["byte by byte", [...image].map((byte) => Uint8Array.of(byte))],
    ["with empty chunks between", [image.subarray(0, 5), new Uint8Array(), image.subarray(5)]],
  ])("accepts an image %s and returns the hash of the whole", async (_how, chunks) => {
    const answer = await iot.updateFirmwareStream(streamOf(headerOf(), ...chunks.map(chunk)));
    expect(answer).toMatchObject({ result: "FIRMWARE_ACCEPTED", firmwareHash: sha256(image) });
  });

  it("accepts 64 MiB for a device", async () => {
    const { stream, firmwareHash } = imageOf(64);
    const deviceId = await registerPinned(iot);
    const answer = await iot.updateFirmwareStream(stream({ deviceId, version: 1 }));
    expect(answer).toMatchObject({ result: "FIRMWARE_ACCEPTED", firmwareHash });
    expect(await findListed(iot, deviceId)).toMatchObject({ firmwareVersion: 1, firmwareHash });
  });

  it.each<[string, Part[], object]>([
    ["a stream without messages", [], invalid("header")],
    ["a chunk before the header", [chunk(image), headerOf()], invalid("header")],
    ["a second header", [headerOf(), chunk(image), headerOf()], invalid("header")],
    ["a header without an image", [headerOf()], invalid("firmware")],
    ["an empty image", [headerOf(), chunk(new Uint8Array())], invalid("firmware")],
    ["a version without a device", [headerOf({ version: 1 }), chunk(image)], fieldInvalid],
    ["neither a key nor a device", [headerOf({ vendorPublicKey: new Uint8Array() })], fieldInvalid],
  ])("rejects %s", async (_what, parts, expected) => {
    expect(await refusal(iot.updateFirmwareStream(streamOf(...parts)))).toMatchObject(expected);
  });

  it("rejects an unknown device, and a device without a vendor, before the image arrives", async () => {
    const unknown = iot.updateFirmwareStream(stalled(headerOf({ deviceId: noSuchDevice })));
    expect(await refusal(unknown)).toEqual({ code: "NotFound", reason: "DEVICE_NOT_FOUND" });
    const { deviceId } = await iot.registerDevice({});
    const keyless = headerOf({ deviceId, vendorPublicKey: new Uint8Array() });
    expect(await refusal(iot.updateFirmwareStream(stalled(keyless)))).toEqual({
      code: "FailedPrecondition",
      reason: "VENDOR_MISSING",
    });
  });

  it("does not install a partial image when the sender's connection breaks", async () => {
    const { iot, url } = await shared();
    const [broken, whole] = [await registerPinned(iot), await registerPinned(iot)];
    const sender = connectTo(url);
    const parts = async function* () {
      yield headerOf({ deviceId: broken });
      yield chunk(image);
      // The server has received the whole image by this point; only the end of the stream is missing.
      await sender.iot.getHealth({});
      sender.disconnect();
      await new Promise<void>((resolve) => onTestFinished(() => resolve()));
    };
    await failureOf(sender.iot.updateFirmwareStream(parts()));
    // A later call has finished, so the earlier one had enough time.
    await iot.updateFirmwareStream(streamOf(headerOf({ deviceId: whole }), chunk(image)));
    expect((await findListed(iot, whole)).firmwareHash).toBe(sha256(image));
    expect((await findListed(iot, broken)).firmwareHash).toBeUndefined();
  });
});

/** Registers a device that keeps its own key, and makes its readings. */
async function registerReader(iot: IotClient) {
  const device = await registerOwn(iot);
  const reading = (sequence?: number, change: object = {}): ReadingRequest => ({
    reading: { ...readingOf(device, sequence), ...change },
  });
  return { deviceId: device.deviceId, reading };
}

const tampered = { telemetry: bytesOf("something else") };

describeApp("iot.IotService.StreamTelemetry", ({ iot, tamper }) => {
  it("answers each reading before the next is sent", async () => {
    const { reading } = await registerReader(iot);
    const outgoing = createOutgoing<ReadingRequest>();
    const answers = iot.streamTelemetry(outgoing)[Symbol.asyncIterator]();
    const beforeMs = Date.now();
    for (const [sequence, verified, reason] of [
      [1, true, ""],
      [1, false, "SEQUENCE_OLD"],
      [2, true, ""],
    ] as const) {
      outgoing.send(reading(sequence));
      const { value } = await answers.next();
      expect(value).toMatchObject({ verified, reason });
      expectTimeSince(beforeMs, value.receivedAt);
    }
    outgoing.end();
    expect((await answers.next()).done).toBe(true);
  });

  it("answers 500 readings sent without waiting, in order", async () => {
    const { deviceId, reading } = await registerReader(iot);
    const readings: ReadingRequest[] = [];
    const expected: string[] = [];
    for (let i = 1; i <= 500; i++) {
      const kind = i % 10;
      readings.push(kind === 3 ? reading(i, tampered) : reading(kind === 7 ? i - 1 : i));
      expected.push(kind === 3 ? "SIGNATURE_INVALID" : kind === 7 ? "SEQUENCE_OLD" : "");
    }
    expect(await reasonsOf(iot.streamTelemetry(streamOf(...readings)))).toEqual(expected);
    expect((await findListed(iot, deviceId)).lastSeenAt).toBeDefined();
  });

  it("answers an unknown device and a signature of the wrong length in order, and continues", async () => {
    const [one, two] = [await registerReader(iot), await registerReader(iot)];
    const answers = iot.streamTelemetry(
      streamOf(
        one.reading(1),
        one.reading(2, { deviceId: noSuchDevice }),
        two.reading(1),
        one.reading(2, { signature: new Uint8Array(2419) }),
        one.reading(2, { deviceId: two.deviceId }),
        one.reading(2),
        two.reading(),
      ),
    );
    const signature = ["LENGTH_INVALID", "SIGNATURE_INVALID"];
    const expected = ["", "DEVICE_NOT_FOUND", "", ...signature, "", "SEQUENCE_REQUIRED"];
    expect(await reasonsOf(answers)).toEqual(expected);
  });

  it("answers everything before a malformed request, then fails", async () => {
    const { reading } = await registerReader(iot);
    const outgoing = createOutgoing<ReadingRequest>();
    const answers = iot.streamTelemetry(outgoing)[Symbol.asyncIterator]();
    outgoing.send(reading(1));
    expect((await answers.next()).value).toMatchObject({ verified: true });
    outgoing.send(reading(2, { sequence: 2.5 }));
    expect(await refusal(answers.next())).toEqual(invalid("reading.sequence"));
  });

  it("fails with RECORD_DAMAGED for a device whose last sequence was set back", async () => {
    const { deviceId, reading } = await registerReader(iot);
    await reasonsOf(iot.streamTelemetry(streamOf(reading(9))));
    await tamper((db) =>
      db.updateTable("iot_devices").set({ last_sequence: 1 }).where("device_id", "=", deviceId).execute(),
    );
    expect(await refusal(reasonsOf(iot.streamTelemetry(streamOf(reading(5)))))).toEqual(damaged);
  });
});

it("StreamTelemetry accepts nothing after a reading that it could not verify, so that all can be sent again", async () => {
  const accepted: unknown[] = [];
  const verify = async (_key: unknown, message: Uint8Array) => {
    if (message.at(-1) === 1) throw new Error("the server is busy");
    return true;
  };
  const checks = createReadingChecks({
    provider: { importPublicKey: () => ({}), unbounded: { verify } },
    store: { tagRecord: () => "" },
    devices: {
      find: async (deviceId: string) => ({ deviceId, owner: "ada", publicKey: new Uint8Array() }),
      acceptReading: async ({ sequence }: { sequence: number }) => void accepted.push(sequence),
    },
    now: () => new Date(),
  } as never);
  const reading = (sequence: number) => {
    const telemetry = Uint8Array.of(sequence);
    return { deviceId: "device-1", telemetry, signature: new Uint8Array(2420), sequence };
  };
  const verdicts = checks.checkStream(
    streamOf(reading(0), reading(1), reading(2), reading(3)),
    systemPrincipal,
  );
  expect((await verdicts.next()).value).toMatchObject({ reason: "" });
  await expect(verdicts.next()).rejects.toThrow("busy");
  expect(accepted).toEqual([0]);
});

describeReplicas("iot.IotService.StreamTelemetry on two servers", (startTwo) => {
  it("accepts each sequence once when streams to both race with the same readings", async () => {
    const iots = (await startTwo()).map(({ iot }) => iot);
    const { reading } = await registerReader(present(iots[0]));
    const readings = Array.from({ length: 50 }, (_, i) => reading(i));
    const outcomes = await Promise.all(
      iots.map(({ streamTelemetry }) => reasonsOf(streamTelemetry(streamOf(...readings)))),
    );
    const timesVerified = readings.map((_, i) => outcomes.filter((reasons) => reasons[i] === "").length);
    expect(Math.max(...timesVerified)).toBe(1);
    expect(timesVerified.at(-1)).toBe(1);
  });
});

describeApp("a device that numbers its readings", ({ iot }) => {
  it("cannot be replayed without the number, as telemetry with 8 extra bytes", async () => {
    const device = await registerOwn(iot);
    const recorded = readingOf(device, 1);
    expect(await iot.sendTelemetry(recorded)).toMatchObject({ verified: true, reason: "" });
    const { deviceId, signature } = recorded;
    const replayed = { deviceId, signature, telemetry: signedReading(telemetry, 1) };
    const refused = { verified: false, reason: "SEQUENCE_REQUIRED" };
    expect(await iot.sendTelemetry(replayed)).toMatchObject(refused);
    expect(await iot.sendTelemetry(readingOf(device))).toMatchObject(refused);
    const streamed = iot.streamTelemetry(streamOf({ reading: replayed }, { reading: replayed }));
    expect(await reasonsOf(streamed)).toEqual(["SEQUENCE_REQUIRED", "SEQUENCE_REQUIRED"]);
    expect(await iot.sendTelemetry(readingOf(device, 2))).toMatchObject({ verified: true });
  });
});

describeApp("a device that does not number its readings", ({ iot }) => {
  it("has no form before its first verified reading", async () => {
    const device = await registerOwn(iot);
    const forged = { ...readingOf(device, 1), telemetry: bytesOf("forged") };
    expect((await iot.sendTelemetry(forged)).reason).toBe("SIGNATURE_INVALID");
    expect(await iot.sendTelemetry(readingOf(device))).toMatchObject({ verified: true });
  });
});

describeReplicas("two servers that receive a device's first readings", (startTwo) => {
  it("settle on one form if the first readings race in both forms", async () => {
    const [one, two] = await startTwo();
    const device = await registerOwn(one.iot);
    const readings = Array.from({ length: 16 }, (_, i) => readingOf(device, i % 2 ? undefined : i));
    const verdicts = await Promise.all(
      readings.map((reading, i) => (i % 4 < 2 ? one : two).iot.sendTelemetry(reading)),
    );
    const [numbered, plain] = [0, 1].map((form) => verdicts.filter((_, i) => i % 2 === form));
    const isNumbered = numbered?.some(({ verified }) => verified);
    const others = isNumbered ? plain : numbered;
    expect(verdicts.some(({ verified }) => verified)).toBe(true);
    expect(new Set(others?.map(({ reason }) => reason))).toEqual(
      new Set([isNumbered ? "SEQUENCE_REQUIRED" : "SEQUENCE_NOT_EXPECTED"]),
    );
  });

  it("recognize each other's challenges", async () => {
    const [one, two] = await startTwo();
    const device = await registerOwn(one.iot);
    const { deviceId } = device;
    const { challenge } = await one.iot.issueChallenge({ deviceId });
    const reading = { deviceId, telemetry: challenge, signature: device.sign(challenge) };
    expect((await two.iot.sendTelemetry(reading)).reason).toBe("CHALLENGE_AS_READING");
  });
});

describeApp("a response to a challenge", ({ iot, start }) => {
  /** Requests a challenge for a device; returns the response as a reading. */
  const respondAsReading = async (iot: IotClient, device: OwnDevice) => {
    const { challenge: telemetry, ...response } = await respond(iot, device);
    return { ...response, telemetry };
  };
  const refused = { verified: false, reason: "CHALLENGE_AS_READING" };

  it("is not a reading: neither before nor after its use, nor in a stream", async () => {
    const { challenge, ...response } = await respond(iot, await registerOwn(iot));
    const reading = { ...response, telemetry: challenge };
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
    expect(await iot.authenticate({ ...response, challenge })).toMatchObject({ authenticated: true });
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
    expect(await reasonsOf(iot.streamTelemetry(streamOf({ reading })))).toEqual([refused.reason]);
  });

  it("does not determine whether the device numbers its readings", async () => {
    const device = await registerOwn(iot);
    await iot.sendTelemetry(await respondAsReading(iot, device));
    expect(await iot.sendTelemetry(readingOf(device, 1))).toMatchObject({ verified: true });
  });

  it("is not a reading of another device that received the challenge", async () => {
    const [one, two] = [await registerOwn(iot), await registerOwn(iot)];
    const reading = await respondAsReading(iot, { ...two, deviceId: one.deviceId });
    const { deviceId } = two;
    expect(await iot.sendTelemetry({ ...reading, deviceId })).toMatchObject(refused);
  });

  it("is not a reading after the store has forgotten the challenge, nor after a restart", async () => {
    const first = await start();
    const reading = await respondAsReading(first.iot, await registerOwn(first.iot));
    await first.tamper((db) => db.deleteFrom("iot_challenges").execute());
    expect(await first.iot.sendTelemetry(reading)).toMatchObject(refused);
    await first.close();
    const { iot } = await start(first.database);
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
  });

  it("is not a numbered reading whose number is the challenge's first 8 bytes", async () => {
    const first = await start();
    const { deviceId, sign } = await registerOwn(first.iot);
    await first.close();
    // One challenge in 2,048 begins with 11 zero bits, so that its first 8 bytes are a valid number.
    const provider = await createCryptoProvider("openssl");
    const store = await openStore({ ...storeSettings(first.config), provider });
    const challenge = makeChallenge(store, new Uint8Array(16));
    await store.close();
    await provider.close();
    const { iot } = await start(first.database);
    const telemetry = Uint8Array.from(challenge.subarray(8));
    const reading = { deviceId, sequence: 0, telemetry, signature: sign(challenge) };
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
  });

  it("uses 32 bytes that look random", async () => {
    const challenges: Uint8Array[] = [];
    // A device may have 20 open challenges.
    while (challenges.length < 64) {
      const { deviceId } = await registerOwn(iot);
      for (let i = 0; i < 16; i++) challenges.push((await iot.issueChallenge({ deviceId })).challenge);
    }
    // 64 × 256 bits, half of them ones: the standard deviation is 64.
    const bits = challenges.flatMap((bytes) => [...bytes].map((byte) => byte.toString(2))).join("");
    expect(Math.abs(bits.replaceAll("0", "").length - 8192)).toBeLessThan(640);
    for (let at = 0; at < 32; at += 4)
      expect(
        new Set(challenges.map((bytes) => Buffer.from(bytes.subarray(at, at + 4)).toString("hex"))).size,
      ).toBe(64);
  });
});

describeApp("a device with signing contexts", ({ iot, tamper }) => {
  const contexts = {
    CHALLENGE: "qsp-iot-challenge-v1",
    READING: "qsp-iot-reading-v1",
    NUMBERED_READING: "qsp-iot-numbered-reading-v1",
  } as const;
  const forged = "SIGNATURE_INVALID";

  async function registerWithContexts(iot: IotClient) {
    const signer = makeSigner("ml-dsa-44");
    const { deviceId } = await iot.registerDevice({ publicKey: signer.publicKey, signingContexts: true });
    return { ...signer, deviceId };
  }

  it("authenticates only with the challenge context", async () => {
    const { deviceId, sign } = await registerWithContexts(iot);
    for (const context of ["", contexts.READING, contexts.NUMBERED_READING, contexts.CHALLENGE]) {
      const { challenge } = await iot.issueChallenge({ deviceId });
      const answer = await iot.authenticate({ deviceId, challenge, signature: sign(challenge, context) });
      expect(answer.reason).toBe(context === contexts.CHALLENGE ? "" : forged);
    }
  });

  it.each([undefined, 1])(
    "sends readings only with the context of their form (sequence %s)",
    async (sequence) => {
      const { deviceId, sign } = await registerWithContexts(iot);
      const right = sequence === undefined ? contexts.READING : contexts.NUMBERED_READING;
      const message = sequence === undefined ? telemetry : signedReading(telemetry, sequence);
      const reading = (context: string) => {
        const signature = sign(message, context);
        return { deviceId, telemetry, signature, ...(sequence !== undefined && { sequence }) };
      };
      for (const context of ["", ...Object.values(contexts)].filter((context) => context !== right))
        expect((await iot.sendTelemetry(reading(context))).reason).toBe(forged);
      expect(await iot.sendTelemetry(reading(right))).toMatchObject({ verified: true });
    },
  );

  it("cannot have its first numbered reading passed off as unnumbered", async () => {
    const { deviceId, sign } = await registerWithContexts(iot);
    const signature = sign(signedReading(telemetry, 1), contexts.NUMBERED_READING);
    const stripped = { deviceId, telemetry: signedReading(telemetry, 1), signature };
    expect((await iot.sendTelemetry(stripped)).reason).toBe(forged);
    const reading = { deviceId, telemetry, sequence: 1, signature };
    expect(await iot.sendTelemetry(reading)).toMatchObject({ verified: true });
  });

  it("is listed as such, and as damaged if its contexts are removed", async () => {
    const { deviceId, sign } = await registerWithContexts(iot);
    expect((await findListed(iot, deviceId)).signingContexts).toBe(true);
    await tamper((db) =>
      db.updateTable("iot_devices").set({ signing_contexts: 0 }).where("device_id", "=", deviceId).execute(),
    );
    const reading = { deviceId, telemetry, signature: sign(telemetry) };
    expect(await refusal(iot.sendTelemetry(reading))).toEqual(damaged);
    expect((await findListed(iot, deviceId)).registrationStatus).toBe("DAMAGED");
  });

  it("requires a purpose in SimulatedSign, which selects the context", async () => {
    const { deviceId, publicKeyPem } = await iot.registerDevice({ simulated: true, signingContexts: true });
    for (const [purpose, context] of Object.entries(contexts)) {
      const { signature } = await iot.simulatedSign({ deviceId, data: telemetry, purpose });
      expect(verifiesOutside(publicKeyPem, telemetry, signature, Buffer.from(context))).toBe(true);
    }
    for (const purpose of ["", "FIRMWARE"])
      expect(await refusal(iot.simulatedSign({ deviceId, data: telemetry, purpose }))).toEqual(
        invalid("purpose"),
      );
    const { challenge } = await iot.issueChallenge({ deviceId });
    const { signature } = await iot.simulatedSign({ deviceId, data: challenge, purpose: "CHALLENGE" });
    expect(await iot.authenticate({ deviceId, challenge, signature })).toMatchObject({ authenticated: true });
  });

  it("is opted in individually: another simulated device signs with an empty context, whatever the purpose", async () => {
    const { deviceId, publicKeyPem } = await iot.registerDevice({ simulated: true });
    for (const purpose of ["", "CHALLENGE", "NUMBERED_READING"]) {
      const { signature } = await iot.simulatedSign({ deviceId, data: telemetry, purpose });
      expect(verifiesOutside(publicKeyPem, telemetry, signature)).toBe(true);
    }
  });
});
