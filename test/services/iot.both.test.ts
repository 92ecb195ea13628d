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
import {
  fieldInvalid,
  invalid,
  invalidArgument,
  keyInvalid,
  lengthInvalid,
  wrongKey,
} from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { present } from "./answers.ts";
import {
  describeApp,
  describeReplicas,
  findListed,
  type IotClient,
  settingsIn,
  startApp,
  type TestApp,
} from "./devices-and-tunnels.ts";
import { makeSigner, rawOf, type Signer, sha256, verifiesOutside } from "./node-crypto.ts";
import { type OwnDevice, registerOwn, signedReading } from "./own-device.ts";

const timeout = 180_000;
const noSuchDevice = "device-00000000-0000-4000-8000-000000000000";
const notFound = { code: "NotFound", reason: "DEVICE_NOT_FOUND" };

/** Signs a challenge for the device and presents it. */
async function authenticate(iot: IotClient, { deviceId, sign }: OwnDevice) {
  const { challenge } = await iot.issueChallenge({ deviceId });
  return iot.authenticate({ deviceId, challenge, signature: sign(challenge) });
}

/** Builds a signed reading. */
function readingOf({ deviceId, sign }: OwnDevice, telemetry: Uint8Array<ArrayBuffer>, sequence?: number) {
  const signature = sign(signedReading(telemetry, sequence));
  return { deviceId, telemetry, signature, ...(sequence !== undefined && { sequence }) };
}

async function verifyToken({ rest }: TestApp, token: string) {
  const { json } = await rest("GET /api/auth/jwks");
  return jwtVerify(token, createLocalJWKSet(json as unknown as Parameters<typeof createLocalJWKSet>[0]));
}

function countByReason(answers: readonly { readonly reason: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason } of answers) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

const telemetry = bytesOf('{"celsius":21.5}');

describeApp("iot.IotService.RegisterDevice", (_start, shared) => {
  it.each(["publicKey", "publicKeyPem"] as const)(
    "accepts the device's own %s, and returns no private key",
    async (field) => {
      const { iot } = await shared();
      const signer = makeSigner("ml-dsa-44");
      const answer = await iot.registerDevice({ deviceName: "meter", [field]: signer[field] });
      expect(answer).toMatchObject({
        status: "success",
        deviceId: expect.stringMatching(/^device-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
        algorithm: "ML-DSA-44",
        registrationStatus: "REGISTERED",
        publicKeyPem: signer.publicKeyPem,
      });
      expect(answer.publicKey).toEqual(signer.publicKey);
      expect(answer.privateKey).toBeUndefined();
    },
  );

  it("generates a pair whose 32-byte seed yields the public key", async () => {
    const { iot } = await shared();
    const { privateKey, publicKey } = await iot.registerDevice({});
    const seed = present(privateKey);
    expect(seed).toHaveLength(32);
    const imported = createPrivateKey({
      key: Buffer.from(seed),
      format: "raw-seed",
      asymmetricKeyType: "ml-dsa-44",
    });
    expect(rawOf(createPublicKey(imported))).toEqual(Uint8Array.from(publicKey));
  });

  it("keeps a simulated device's seed secret, and signs as the device", async () => {
    const { iot } = await shared();
    const { deviceId, privateKey, publicKeyPem } = await iot.registerDevice({ simulated: true });
    expect(privateKey).toBeUndefined();
    const { status, signature } = await iot.simulatedSign({ deviceId, data: telemetry });
    expect(status).toBe("success");
    expect(signature).toHaveLength(2420);
    expect(verifiesOutside(publicKeyPem, telemetry, signature)).toBe(true);
    expect(verifiesOutside(publicKeyPem, flipBit(telemetry), signature)).toBe(false);
  });

  it("signs only as a simulated device", async () => {
    const { iot } = await shared();
    const { deviceId } = await iot.registerDevice({});
    expect(await refusal(iot.simulatedSign({ deviceId, data: telemetry }))).toEqual({
      code: "FailedPrecondition",
      reason: "DEVICE_NOT_SIMULATED",
    });
    expect(await refusal(iot.simulatedSign({ deviceId: noSuchDevice, data: telemetry }))).toEqual(notFound);
  });

  const { publicKey, publicKeyPem } = makeSigner("ml-dsa-44");
  const other = makeSigner("ml-dsa-65");
  const { publicKey: vendor } = makeSigner("ml-dsa-87");
  it.each([
    ["a key one byte short", { publicKey: publicKey.subarray(1) }, wrongKey("publicKey")],
    ["a key of a different algorithm", { publicKey: other.publicKey }, wrongKey("publicKey")],
    ["a PEM key of a different algorithm", { publicKeyPem: other.publicKeyPem }, wrongKey("publicKeyPem")],
    ["text that is not PEM", { publicKeyPem: "no key" }, wrongKey("publicKeyPem")],
    ["a vendor key with the device algorithm", { vendorPublicKey: publicKey }, wrongKey("vendorPublicKey")],
    ["a vendor's PEM key with it", { vendorPublicKeyPem: publicKeyPem }, wrongKey("vendorPublicKeyPem")],
    ["a name with a control character", { deviceName: "a\nb" }, invalid("deviceName")],
    ["a name of 256 characters", { deviceName: "a".repeat(256) }, invalid("deviceName")],
  ])("rejects %s", async (_what, request, expected) => {
    const { iot } = await shared();
    expect(await refusal(iot.registerDevice(request))).toEqual(expected);
  });

  it.each([
    ["its key raw and as PEM", { publicKey, publicKeyPem }],
    ["the vendor's key raw and as PEM", { vendorPublicKey: vendor, vendorPublicKeyPem: "x" }],
    ["its own key for a simulated device", { simulated: true, publicKey }],
  ])("rejects %s", async (_what, request) => {
    const { iot } = await shared();
    expect(await refusal(iot.registerDevice(request))).toMatchObject({ code: "InvalidArgument" });
  });
});

describeApp("a challenge in the store", (_start, shared) => {
  /** Reads the rows of a device's challenges. */
  const readRows = ({ tamper }: TestApp, deviceId: string) =>
    tamper((db) => db.selectFrom("iot_challenges").selectAll().where("device_id", "=", deviceId).execute());

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
      const { challenge } = await app.iot.issueChallenge({ deviceId: issued.deviceId });
      await app.iot.authenticate({ deviceId: issued.deviceId, challenge, signature: issued.sign(challenge) });
      const change = forge(own.deviceId);
      await app.tamper((db) =>
        db.updateTable("iot_challenges").set(change).where("device_id", "=", issued.deviceId).execute(),
      );
      const { deviceId, sign } = "device_id" in change ? own : issued;
      const damaged = { code: "DataLoss", reason: "RECORD_DAMAGED" };
      const answer = app.iot.authenticate({ deviceId, challenge, signature: sign(challenge) });
      expect(await refusal(answer)).toEqual(damaged);
    },
  );

  it("rejects a used challenge whose earlier row was restored in the store", async () => {
    const app = await shared();
    const { deviceId, sign } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    const rows = await readRows(app, deviceId);
    const input = { deviceId, challenge, signature: sign(challenge) };
    expect(await app.iot.authenticate(input)).toMatchObject({ authenticated: true });
    await app.tamper((db) => db.deleteFrom("iot_challenges").where("device_id", "=", deviceId).execute());
    await app.tamper((db) => db.insertInto("iot_challenges").values(rows).execute());
    expect(await app.iot.authenticate(input)).toMatchObject({
      authenticated: false,
      reason: "CHALLENGE_USED",
    });
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

  it("issues 32 fresh bytes that are valid for 60 seconds", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot);
    const beforeMs = Date.now();
    const [first, second] = [await iot.issueChallenge({ deviceId }), await iot.issueChallenge({ deviceId })];
    expect(first.status).toBe("success");
    expect(first.challenge).toHaveLength(32);
    expect(second.challenge).not.toEqual(first.challenge);
    const diesMs = timestampDate(present(first.expiresAt)).getTime();
    expect(diesMs).toBeGreaterThanOrEqual(beforeMs + 60_000);
    expect(diesMs).toBeLessThanOrEqual(Date.now() + 60_000);
  });

  it("stores no challenge in plaintext", async () => {
    const app = await shared();
    const { deviceId } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    const rows = await app.tamper((db) =>
      db.selectFrom("iot_challenges").selectAll().where("device_id", "=", deviceId).execute(),
    );
    expect(rows).toMatchObject([{ challenge_hash: sha256(challenge), used_at_ms: null }]);
    const text = JSON.stringify(rows);
    const clear = Buffer.from(challenge);
    for (const encoding of ["hex", "base64", "base64url"] as const)
      expect(text).not.toContain(clear.toString(encoding));
  });

  it("authenticates a device with a token whose subject is the device", async () => {
    const app = await shared();
    const device = await registerOwn(app.iot);
    const { status, authenticated, reason, token, expiresAt } = await authenticate(app.iot, device);
    expect({ status, authenticated, reason }).toEqual({ status: "success", authenticated: true, reason: "" });
    const { payload, protectedHeader } = await verifyToken(app, present(token));
    expect(payload.sub).toBe(device.deviceId);
    expect(protectedHeader.alg).toBe("ML-DSA-65");
    expect(payload.exp).toBe(timestampDate(present(expiresAt)).getTime() / 1000);
  });

  it("accepts a challenge only once", async () => {
    const { iot } = await shared();
    const { deviceId, sign } = await registerOwn(iot);
    const { challenge } = await iot.issueChallenge({ deviceId });
    const order = { deviceId, challenge, signature: sign(challenge) };
    expect(await iot.authenticate(order)).toMatchObject({ authenticated: true });
    const again = await iot.authenticate(order);
    expect(again).toMatchObject({ status: "success", authenticated: false, reason: "CHALLENGE_USED" });
    expect(again.token).toBeUndefined();
    expect(again.expiresAt).toBeUndefined();
  });

  it("rejects another device's challenge, which that device can still use", async () => {
    const { iot } = await shared();
    const [owner, thief] = [await registerOwn(iot), await registerOwn(iot)];
    const { challenge } = await iot.issueChallenge({ deviceId: owner.deviceId });
    const stolen = { deviceId: thief.deviceId, challenge, signature: thief.sign(challenge) };
    const { authenticated, reason, token } = await iot.authenticate(stolen);
    expect({ authenticated, reason, token }).toEqual({ authenticated: false, reason: "CHALLENGE_FOREIGN" });
    const own = { deviceId: owner.deviceId, challenge, signature: owner.sign(challenge) };
    expect(await iot.authenticate(own)).toMatchObject({ authenticated: true });
  });

  it.each([
    ["has expired", 60_000, "CHALLENGE_EXPIRED"],
    ["is from the future, as after a clock was set back", -3_600_000, "CHALLENGE_EXPIRED"],
    ["is about to expire", 30_000, ""],
    ["expired more than an hour ago and was forgotten", 2 * 3_600_000, "CHALLENGE_UNKNOWN"],
  ])("returns the right reason for a challenge that %s", async (_what, ageMs, expected) => {
    const app = await shared();
    const { deviceId, sign } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    await ageChallenges(app, deviceId, ageMs);
    await app.iot.issueChallenge({ deviceId });
    const answer = await app.iot.authenticate({ deviceId, challenge, signature: sign(challenge) });
    const { authenticated, reason, token } = answer;
    expect([authenticated, reason]).toEqual([expected === "", expected]);
    expect(token === undefined).toBe(expected !== "");
  });

  it("uses up a challenge on a wrong signature", async () => {
    const { iot } = await shared();
    const { deviceId, sign } = await registerOwn(iot);
    const { challenge } = await iot.issueChallenge({ deviceId });
    const signature = sign(challenge);
    expect(await iot.authenticate({ deviceId, challenge, signature: flipBit(signature) })).toMatchObject({
      authenticated: false,
      reason: "SIGNATURE_INVALID",
    });
    expect(await iot.authenticate({ deviceId, challenge, signature })).toMatchObject({
      reason: "CHALLENGE_USED",
    });
  });

  it("rejects a signature or challenge of the wrong length, naming the field", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot);
    const { challenge } = await iot.issueChallenge({ deviceId });
    const short = iot.authenticate({ deviceId, challenge, signature: new Uint8Array(2419) });
    expect(await refusal(short)).toEqual(invalidArgument("LENGTH_INVALID", "signature"));
    const cut = iot.authenticate({
      deviceId,
      challenge: challenge.subarray(1),
      signature: new Uint8Array(2420),
    });
    expect(await refusal(cut)).toEqual(invalidArgument("FIELD_INVALID", "challenge"));
  });
});

describeApp("iot.IotService.SendTelemetry", (_start, shared) => {
  it("verifies a signed reading, and returns when it arrived", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const beforeMs = Date.now();
    const answer = await iot.sendTelemetry(readingOf(device, telemetry));
    expect(answer).toMatchObject({ status: "success", verified: true, reason: "" });
    const receivedMs = timestampDate(present(answer.receivedAt)).getTime();
    expect(receivedMs).toBeGreaterThanOrEqual(beforeMs);
    expect(receivedMs).toBeLessThanOrEqual(Date.now());
  });

  it("does not verify a modified reading", async () => {
    const { iot } = await shared();
    const reading = readingOf(await registerOwn(iot), telemetry);
    const changed = { ...reading, telemetry: flipBit(telemetry) };
    expect(await iot.sendTelemetry(changed)).toMatchObject({ verified: false, reason: "SIGNATURE_INVALID" });
  });

  it("requires the sequence to be part of the signed bytes", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const [plain, counted] = [readingOf(device, telemetry), readingOf(device, telemetry, 7)];
    const forged = { verified: false, reason: "SIGNATURE_INVALID" };
    expect(await iot.sendTelemetry({ ...plain, sequence: 7 })).toMatchObject(forged);
    expect(await iot.sendTelemetry({ ...counted, sequence: 8 })).toMatchObject(forged);
    const { sequence: _, ...uncounted } = counted;
    expect(await iot.sendTelemetry(uncounted)).toMatchObject(forged);
    expect(await iot.sendTelemetry(counted)).toMatchObject({ verified: true });
    expect(await findListed(iot, device.deviceId)).toMatchObject({ readingForm: "NUMBERED" });
  });

  it.each([1.5, -1, 9007199254740992, Number.NaN, Number.POSITIVE_INFINITY])(
    "rejects the sequence %d",
    async (sequence) => {
      const { iot } = await shared();
      const reading = { ...readingOf(await registerOwn(iot), telemetry), sequence };
      expect(await refusal(iot.sendTelemetry(reading))).toEqual(invalidArgument("FIELD_INVALID", "sequence"));
    },
  );

  it("rejects an unknown device, missing telemetry, and a signature of the wrong length", async () => {
    const { iot } = await shared();
    const reading = readingOf(await registerOwn(iot), telemetry);
    expect(await refusal(iot.sendTelemetry({ ...reading, deviceId: noSuchDevice }))).toEqual(notFound);
    expect(await refusal(iot.sendTelemetry({ ...reading, telemetry: new Uint8Array() }))).toEqual(
      invalidArgument("FIELD_INVALID", "telemetry"),
    );
    expect(await refusal(iot.sendTelemetry({ ...reading, signature: new Uint8Array(1) }))).toEqual(
      invalidArgument("LENGTH_INVALID", "signature"),
    );
  });
});

async function lastSequenceOf({ tamper }: TestApp, { deviceId }: OwnDevice): Promise<number | null> {
  const row = await tamper((db) =>
    db
      .selectFrom("iot_devices")
      .select("last_sequence")
      .where("device_id", "=", deviceId)
      .executeTakeFirstOrThrow(),
  );
  return row.last_sequence;
}

describeApp("iot.IotService.UpdateFirmware", (_start, shared) => {
  const image = bytesOf("firmware, version 7");
  const vendor = makeSigner("ml-dsa-87");
  const otherVendor = makeSigner("ml-dsa-87");
  const signImage = ({ sign }: Signer, firmware: Uint8Array) => sign(Buffer.from(sha256(firmware), "hex"));
  /** Firmware signed by a vendor, with the vendor's key. */
  const firmwareOf = ({ publicKey, ...by }: Signer, firmware = image) => ({
    firmware,
    signature: signImage({ publicKey, ...by }, firmware),
    vendorPublicKey: publicKey,
  });
  const rejected = (reason: string) => ({ status: "success", result: "FIRMWARE_REJECTED", reason });
  const accepted = {
    status: "success",
    result: "FIRMWARE_ACCEPTED",
    reason: "",
    firmwareHash: sha256(image),
  };

  const firmware = firmwareOf(vendor);
  const { vendorPublicKey: _, ...keyless } = firmware;
  const changed = flipBit(image);
  it.each([
    ["signed firmware for no particular device", firmware, accepted],
    ["the vendor's key as PEM", { ...keyless, vendorPublicKeyPem: vendor.publicKeyPem }, accepted],
    [
      "a modified image",
      { ...firmware, firmware: changed },
      { ...rejected("SIGNATURE_INVALID"), firmwareHash: sha256(changed) },
    ],
    [
      "a signature over the image itself instead of its hash",
      { ...firmware, signature: vendor.sign(image) },
      rejected("SIGNATURE_INVALID"),
    ],
  ])("returns the right result for %s", async (_what, request, expected) => {
    const { iot } = await shared();
    expect(await iot.updateFirmware(request)).toMatchObject(expected);
  });

  it("rejects another vendor's signature, both with the pinned key and with its own key", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const { signature } = firmwareOf(otherVendor);
    const forged = iot.updateFirmware({ ...firmwareOf(vendor), deviceId, signature });
    expect(await forged).toMatchObject(rejected("SIGNATURE_INVALID"));
    const foreign = iot.updateFirmware({ ...firmwareOf(otherVendor), deviceId });
    expect(await foreign).toMatchObject(rejected("VENDOR_MISMATCH"));
    expect((await findListed(iot, deviceId)).firmwareHash).toBeUndefined();
  });

  it("uses the pinned vendor if the request has no key", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    expect(await iot.updateFirmware({ ...keyless, deviceId })).toMatchObject(accepted);
  });

  it("rejects firmware without a key for a device without a pinned vendor", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot);
    const missing = { code: "FailedPrecondition", reason: "VENDOR_MISSING" };
    expect(await refusal(iot.updateFirmware({ ...keyless, deviceId }))).toEqual(missing);
  });

  it("gets one version if updates with and without one race", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const versioned = { ...firmwareOf(vendor), version: 1 };
    const older = firmwareOf(vendor, flipBit(image));
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        iot.updateFirmware({ ...(i === 0 ? versioned : older), deviceId }),
      ),
    );
    expect(await findListed(iot, deviceId)).toMatchObject({
      ...{ firmwareVersion: 1, firmwareHash: sha256(image) },
    });
  });

  it("keeps the installed version when firmware is rejected", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    await iot.updateFirmware({ ...firmwareOf(vendor), deviceId, version: 5 });
    const older = iot.updateFirmware({ ...firmwareOf(vendor, flipBit(image)), deviceId, version: 4 });
    expect(await older).toMatchObject(rejected("VERSION_ROLLBACK"));
    expect(await findListed(iot, deviceId)).toMatchObject({
      firmwareVersion: 5,
      firmwareHash: sha256(image),
    });
  });

  it.each([
    ["an unknown device", { ...firmware, deviceId: noSuchDevice }, notFound],
    ["a vendor key of the wrong length", { ...firmware, vendorPublicKey: new Uint8Array(2591) }, keyInvalid],
    ["a signature of the wrong length", { ...firmware, signature: new Uint8Array(4626) }, lengthInvalid],
    ["no image", { ...firmware, firmware: new Uint8Array() }, fieldInvalid],
    ["neither a key nor a device", keyless, { code: "InvalidArgument" }],
    ["a version without a device", { ...firmware, version: 1 }, { code: "InvalidArgument" }],
    [
      "a key raw and as PEM",
      { ...firmware, vendorPublicKeyPem: vendor.publicKeyPem },
      { code: "InvalidArgument" },
    ],
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
    const { deviceId, headers } = await makeDevice(iot);
    const other = await makeDevice(iot);
    expect((await findListed(iot, deviceId)).reportedFirmware).toBeUndefined();
    const { status, reportedAt } = await iot.reportFirmware(report, { headers });
    expect(status).toBe("success");
    const { reportedFirmware, lastSeenAt, firmwareVersion } = await findListed(iot, deviceId);
    expect(reportedFirmware).toMatchObject({ ...report, reportedAt, previousVersion: "" });
    expect(lastSeenAt).toEqual(reportedAt);
    expect(firmwareVersion).toBeUndefined();
    expect((await findListed(iot, other.deviceId)).reportedFirmware).toBeUndefined();
  });

  it("records a lower version, and shows the version before", async () => {
    const { iot } = await shared();
    const { deviceId, headers } = await makeDevice(iot);
    for (const version of ["3", "2", "2"]) await iot.reportFirmware({ ...report, version }, { headers });
    const { reportedFirmware } = await findListed(iot, deviceId);
    expect(reportedFirmware).toMatchObject({ version: "2", previousVersion: "3" });
    await iot.reportFirmware({ ...report, version: "" }, { headers });
    const after = (await findListed(iot, deviceId)).reportedFirmware;
    expect(after).toMatchObject({ version: "", previousVersion: "2" });
  });

  it("requires a device token, even on an open server", async () => {
    const { iot } = await shared();
    expect(await refusal(iot.reportFirmware(report))).toEqual({
      code: "Unauthenticated",
      reason: "TOKEN_MISSING",
    });
  });

  it.each<[string, object]>([
    ["targetPath", { targetPath: "" }],
    ["targetPath", { targetPath: "a\u0000" }],
    ["targetPath", { targetPath: "a".repeat(513) }],
    ["version", { version: "1 2" }],
    ["version", { version: "1".repeat(65) }],
    ["firmwareHash", { firmwareHash: "AB".repeat(32) }],
    ["firmwareHash", { firmwareHash: "ab".repeat(31) }],
  ])("refuses an invalid %s", async (field, changed) => {
    const { iot } = await shared();
    const { headers } = await makeDevice(iot);
    expect(await refusal(iot.reportFirmware({ ...report, ...changed }, { headers }))).toEqual(invalid(field));
  });
});

describeApp("iot.IotService.ListDevices", (start, shared) => {
  it("shows everything known about a device, and omits what it never did", async () => {
    const { iot } = await shared();
    const { publicKey } = makeSigner("ml-dsa-44");
    const request = { deviceName: "meter 0", deviceType: "meter", publicKey };
    const { deviceId } = await iot.registerDevice(request);
    const about = { algorithm: "ML-DSA-44", registrationStatus: "REGISTERED", simulated: false };
    const listed = await findListed(iot, deviceId);
    expect(listed).toMatchObject({ ...request, ...about, deviceId });
    expect([listed.lastSeenAt, listed.firmwareVersion, listed.firmwareHash]).toEqual(
      Array(3).fill(undefined),
    );
    const simulated = await iot.registerDevice({ simulated: true });
    expect(await findListed(iot, simulated.deviceId)).toMatchObject({ simulated: true });
  });

  it.each<[string, (iot: IotClient, device: OwnDevice) => Promise<unknown>]>([
    ["authenticated", authenticate],
    ["sent a reading", (iot, device) => iot.sendTelemetry(readingOf(device, telemetry))],
  ])("shows when a device last %s", async (_deed, act) => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const beforeMs = Date.now();
    await act(iot, device);
    const { lastSeenAt } = await findListed(iot, device.deviceId);
    const seenMs = timestampDate(present(lastSeenAt)).getTime();
    expect(seenMs).toBeGreaterThanOrEqual(beforeMs);
    expect(seenMs).toBeLessThanOrEqual(Date.now());
  });

  it("does not mark a device as seen when its message did not verify", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    await iot.sendTelemetry({ ...readingOf(device, telemetry), telemetry: flipBit(telemetry) });
    const { challenge } = await iot.issueChallenge({ deviceId: device.deviceId });
    await iot.authenticate({ deviceId: device.deviceId, challenge, signature: device.sign(telemetry) });
    expect((await findListed(iot, device.deviceId)).lastSeenAt).toBeUndefined();
  });

  it("keeps devices, sequences and simulated keys across a restart", async () => {
    const first = await start();
    const device = await registerOwn(first.iot);
    const simulated = await first.iot.registerDevice({ simulated: true });
    await first.iot.sendTelemetry(readingOf(device, telemetry, 9));
    await first.close();
    const { iot } = await start(first.config);
    expect((await iot.listDevices({})).totalSize).toBe(2);
    const { reason } = await iot.sendTelemetry(readingOf(device, telemetry, 9));
    expect(reason).toBe("SEQUENCE_OLD");
    const { signature } = await iot.simulatedSign({ deviceId: simulated.deviceId, data: telemetry });
    expect(verifiesOutside(simulated.publicKeyPem, telemetry, signature)).toBe(true);
  });
});

describeApp("iot.IotService.GetHealth", (start) => {
  it("is UP with the number of devices and both algorithms", async () => {
    const { iot } = await start();
    await registerOwn(iot);
    await registerOwn(iot);
    const both = { mlDsa44Available: true, mlDsa87Available: true };
    expect(await iot.getHealth({})).toMatchObject({ serviceStatus: "UP", deviceCount: 2, ...both });
  });
});

describePostgres("iot.IotService.GetHealth and vpn.VpnService.GetHealth", () => {
  it("are DOWN, without counts, while the database is down", { timeout }, async () => {
    const postgres = await startPostgres({ durable: false });
    onTestFinished(() => postgres.close());
    const databaseUrl = await postgres.createDatabase();
    const { rest } = await startApp(settingsIn(makeTemporaryDirectory(), "--database-url", databaseUrl));
    await postgres.stop();
    expect((await rest("GET /api/iot/health")).json).toEqual({
      status: "success",
      serviceStatus: "DOWN",
      mlDsa44Available: true,
      mlDsa87Available: true,
    });
    expect((await rest("GET /api/vpn/health")).json).toMatchObject({
      status: "success",
      serviceStatus: "DOWN",
    });
  });
});

describeReplicas("iot.IotService on two servers", (startTwo) => {
  it("authenticates one of 64 callers that race with one challenge", async () => {
    const apps = await startTwo();
    const { deviceId, sign } = await registerOwn(present(apps[0]).iot);
    const { challenge } = await present(apps[1]).iot.issueChallenge({ deviceId });
    const order = { deviceId, challenge, signature: sign(challenge) };
    const calls = Array.from({ length: 64 }, (_, i) => present(apps[i % 2]).iot.authenticate(order));
    expect(countByReason(await Promise.all(calls))).toEqual({ "": 1, CHALLENGE_USED: 63 });
  });

  it("accepts each sequence at most once, and ends with the highest", async () => {
    const apps = await startTwo();
    const app = present(apps[0]);
    const device = await registerOwn(app.iot);
    const readings = Array.from({ length: 32 }, (_, i) => readingOf(device, telemetry, i));
    const answers = await Promise.all(
      apps.flatMap(({ iot }) => readings.map((reading) => iot.sendTelemetry(reading))),
    );
    const accepted = answers.flatMap(({ verified }, i) => (verified ? [i % 32] : []));
    expect(new Set(accepted).size).toBe(accepted.length);
    expect(accepted).toContain(31);
    expect(await lastSequenceOf(app, device)).toBe(31);
  });
});
