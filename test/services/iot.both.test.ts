import { createPrivateKey, createPublicKey } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createLocalJWKSet, jwtVerify } from "jose";
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { Schema } from "../../src/database/schema.ts";
import { openTable } from "../../src/records/record-table.ts";
import { intact } from "../../src/records/table-declaration.ts";
import { challengeTable } from "../../src/services/iot/tables.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { openStore } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { refusal } from "../support/refusal.ts";
import { damaged, invalid, keyInvalid, lengthInvalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { expectTimeSince } from "../support/times.ts";
import { present } from "./answers.ts";
import {
  describeApp,
  describeReplicas,
  findListed,
  type IotClient,
  startApp,
  type TestApp,
} from "./devices-and-tunnels.ts";
import { makeSigner, rawOf, sha256, verifiesOutside } from "./node-crypto.ts";
import { noSuchDevice, type OwnDevice, readingOf, registerOwn, respond, telemetry } from "./own-device.ts";

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

describeApp("iot.IotService.RegisterDevice", (_start, shared) => {
  it.each(["publicKey", "publicKeyPem"] as const)(
    "accepts the device's own %s, and returns no private key",
    async (field) => {
      const { iot } = await shared();
      const signer = makeSigner("ml-dsa-44");
      const answer = await iot.registerDevice({ deviceName: "meter", [field]: signer[field] });
      expect(answer.publicKeyPem).toBe(signer.publicKeyPem);
      expect(answer.publicKey).toEqual(signer.publicKey);
      expect(answer.privateKey).toBeUndefined();
    },
  );

  it("generates a pair whose 32-byte seed yields the public key", async () => {
    const { iot } = await shared();
    const { privateKey, publicKey } = await iot.registerDevice({});
    const key = Buffer.from(present(privateKey));
    const imported = createPrivateKey({ key, format: "raw-seed", asymmetricKeyType: "ml-dsa-44" });
    expect(rawOf(createPublicKey(imported))).toEqual(Uint8Array.from(publicKey));
  });

  it("keeps a simulated device's seed secret, and signs only as such a device", async () => {
    const { iot } = await shared();
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
    const { iot } = await shared();
    expect(await refusal(iot.registerDevice(request))).toMatchObject(expected);
  });
});

describeApp("a challenge in the store", (_start, shared) => {
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

describeApp("iot.IotService.IssueChallenge and Authenticate", (_start, shared) => {
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
    const { iot, rest } = await shared();
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
    const { iot } = await shared();
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
    const { iot } = await shared();
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

describeApp("iot.IotService.SendTelemetry", (_start, shared) => {
  it("requires the telemetry and the sequence to be what was signed", async () => {
    const { iot } = await shared();
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
    const { iot } = await shared();
    const reading = { ...readingOf(await registerOwn(iot)), ...change };
    expect(await refusal(iot.sendTelemetry(reading))).toEqual(expected);
  });
});

describeApp("iot.IotService.UpdateFirmware", (_start, shared) => {
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
    const { iot } = await shared();
    expect(await iot.updateFirmware(request)).toMatchObject(expected);
  });

  it("accepts for a device only what its pinned vendor signed", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const foreign = firmwareOf(otherVendor);
    const forged = { ...firmware, deviceId, signature: foreign.signature };
    expect(await iot.updateFirmware(forged)).toMatchObject(rejected("SIGNATURE_INVALID"));
    expect(await iot.updateFirmware({ ...foreign, deviceId })).toMatchObject(rejected("VENDOR_MISMATCH"));
    expect((await findListed(iot, deviceId)).firmwareHash).toBeUndefined();
    expect(await iot.updateFirmware({ ...keyless, deviceId })).toMatchObject(accepted);
  });

  it("gets one version if updates with and without one race", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const older = firmwareOf(vendor, changed);
    const updates = [{ ...firmware, version: 1 }, ...Array(9).fill(older)];
    await Promise.all(updates.map((update) => iot.updateFirmware({ ...update, deviceId })));
    const { firmwareHash } = accepted;
    expect(await findListed(iot, deviceId)).toMatchObject({ firmwareVersion: 1, firmwareHash });
  });

  it("keeps the installed version when firmware is rejected", async () => {
    const { iot } = await shared();
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
    const { iot } = await shared();
    expect(await refusal(iot.updateFirmware(request))).toMatchObject(expected);
  });
});

describeApp("iot.IotService.ReportFirmware", (_start, shared) => {
  const report = { targetPath: "meter/firmware.bin", version: "3", firmwareHash: "ab".repeat(32) };
  /** A registered device with the headers of its token. */
  const makeDevice = async (iot: IotClient) => {
    const device = await registerOwn(iot);
    const { token = "" } = await authenticate(iot, device);
    return { ...device, headers: { authorization: `Bearer ${token}` } };
  };

  it("records what the device that calls says, and shows it in the list", async () => {
    const { iot } = await shared();
    const [{ deviceId, headers }, other] = [await makeDevice(iot), await makeDevice(iot)];
    const { reportedAt } = await iot.reportFirmware(report, { headers });
    const { reportedFirmware, lastSeenAt, firmwareVersion } = await findListed(iot, deviceId);
    expect(reportedFirmware).toMatchObject({ ...report, reportedAt, previousVersion: "" });
    expect([lastSeenAt, firmwareVersion]).toEqual([reportedAt, undefined]);
    expect((await findListed(iot, other.deviceId)).reportedFirmware).toBeUndefined();
  });

  it("records a lower version, and shows the version before", async () => {
    const { iot } = await shared();
    const { deviceId, headers } = await makeDevice(iot);
    const afterReports = async (...versions: string[]) => {
      for (const version of versions) await iot.reportFirmware({ ...report, version }, { headers });
      return (await findListed(iot, deviceId)).reportedFirmware;
    };
    expect(await afterReports("3", "2", "2")).toMatchObject({ version: "2", previousVersion: "3" });
    expect(await afterReports("")).toMatchObject({ version: "", previousVersion: "2" });
  });

  it("requires a device token, even on an open server", async () => {
    const { iot } = await shared();
    const missing = { code: "Unauthenticated", reason: "TOKEN_MISSING" };
    expect(await refusal(iot.reportFirmware(report))).toEqual(missing);
  });
});

describeApp("iot.IotService.ListDevices", (start, shared) => {
  it("shows everything known about a device, and omits what it never did", async () => {
    const { iot } = await shared();
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
    const { iot } = await shared();
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
