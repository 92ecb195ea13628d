import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createLocalJWKSet, jwtVerify } from "jose";
import { expect, it, onTestFinished } from "vitest";
import { RegisterDeviceResponseSchema } from "#gen/iot/iot_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { Schema } from "../../src/database/schema.ts";
import { openTable } from "../../src/records/record-table.ts";
import { intact } from "../../src/records/table-declaration.ts";
import { challengeTable } from "../../src/services/iot/tables.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { base64, bytesOf, flipBit } from "../support/bytes.ts";
import { openStore } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { refusal } from "../support/refusal.ts";
import { damaged, invalidArgument } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { present, restRefusal } from "./answers.ts";
import {
  describeApp,
  describeReplicas,
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

/** Signs a challenge of the device's own and presents it. */
async function authenticate(iot: IotClient, { deviceId, sign }: OwnDevice) {
  const { challenge } = await iot.issueChallenge({ deviceId });
  return iot.authenticate({ deviceId, challenge, signature: sign(challenge) });
}

/** What a device sends of a reading. */
function readingOf({ deviceId, sign }: OwnDevice, telemetry: Uint8Array<ArrayBuffer>, sequence?: number) {
  const signature = sign(signedReading(telemetry, sequence));
  return { deviceId, telemetry, signature, ...(sequence !== undefined && { sequence }) };
}

async function findListed(iot: IotClient, deviceId: string) {
  let pageToken = "";
  do {
    const page = await iot.listDevices({ pageToken });
    const found = page.devices.find((device) => device.deviceId === deviceId);
    if (found) return found;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  throw new Error(`${deviceId} is not listed`);
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
  it("takes a raw public key of the device, and tells no private key", async () => {
    const { iot } = await shared();
    const { publicKey, publicKeyPem } = makeSigner("ml-dsa-44");
    const answer = await iot.registerDevice({ deviceName: "meter", deviceType: "sensor", publicKey });
    expect(answer).toMatchObject({
      status: "success",
      deviceId: expect.stringMatching(/^device-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      algorithm: "ML-DSA-44",
      registrationStatus: "REGISTERED",
      publicKeyPem,
    });
    expect(answer.publicKey).toEqual(publicKey);
    expect(answer.privateKey).toBeUndefined();
  });

  it("takes a public key as PEM", async () => {
    const { iot } = await shared();
    const { publicKey, publicKeyPem } = makeSigner("ml-dsa-44");
    const answer = await iot.registerDevice({ publicKeyPem });
    expect(answer.publicKey).toEqual(publicKey);
    expect(answer.privateKey).toBeUndefined();
  });

  it("makes a pair whose 32-byte seed makes the public key", async () => {
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

  it("keeps the seed of a simulated device for itself, and signs as the device", async () => {
    const { iot } = await shared();
    const { deviceId, privateKey, publicKeyPem } = await iot.registerDevice({ simulated: true });
    expect(privateKey).toBeUndefined();
    const { status, signature } = await iot.simulatedSign({ deviceId, data: telemetry });
    expect(status).toBe("success");
    expect(signature).toHaveLength(2420);
    expect(verifiesOutside(publicKeyPem, telemetry, signature)).toBe(true);
    expect(verifiesOutside(publicKeyPem, flipBit(telemetry), signature)).toBe(false);
  });

  it("lets a simulated device authenticate with what SimulatedSign signs", async () => {
    const { iot } = await shared();
    const { deviceId } = await iot.registerDevice({ simulated: true });
    const { challenge } = await iot.issueChallenge({ deviceId });
    const { signature } = await iot.simulatedSign({ deviceId, data: challenge });
    expect(await iot.authenticate({ deviceId, challenge, signature })).toMatchObject({ authenticated: true });
  });

  it("does not sign as a device that brought its own key", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot);
    expect(await refusal(iot.simulatedSign({ deviceId, data: telemetry }))).toEqual({
      code: "FailedPrecondition",
      reason: "DEVICE_NOT_SIMULATED",
    });
  });

  it("does not sign as a device whose pair it made but did not keep", async () => {
    const { iot } = await shared();
    const { deviceId } = await iot.registerDevice({});
    expect(await refusal(iot.simulatedSign({ deviceId, data: telemetry }))).toMatchObject({
      reason: "DEVICE_NOT_SIMULATED",
    });
  });

  it("does not sign as a device that is not there", async () => {
    const { iot } = await shared();
    expect(await refusal(iot.simulatedSign({ deviceId: noSuchDevice, data: telemetry }))).toEqual(notFound);
  });

  const { publicKey, publicKeyPem } = makeSigner("ml-dsa-44");
  const other = makeSigner("ml-dsa-65");
  const vendor = makeSigner("ml-dsa-87");
  it.each([
    ["a key one byte short", { publicKey: publicKey.subarray(1) }, "KEY_INVALID", "publicKey"],
    ["a key of another algorithm", { publicKey: other.publicKey }, "KEY_INVALID", "publicKey"],
    ["a PEM of another algorithm", { publicKeyPem: other.publicKeyPem }, "KEY_INVALID", "publicKeyPem"],
    ["a PEM that is none", { publicKeyPem: "no key" }, "KEY_INVALID", "publicKeyPem"],
    [
      "a vendor's key of the device's algorithm",
      { vendorPublicKey: publicKey },
      "KEY_INVALID",
      "vendorPublicKey",
    ],
    [
      "a vendor's PEM of the device's algorithm",
      { vendorPublicKeyPem: publicKeyPem },
      "KEY_INVALID",
      "vendorPublicKeyPem",
    ],
    ["a name with a control character", { deviceName: "a\nb" }, "FIELD_INVALID", "deviceName"],
    ["a name of 256 characters", { deviceName: "a".repeat(256) }, "FIELD_INVALID", "deviceName"],
  ])("refuses %s", async (_what, request, reason, field) => {
    const { iot } = await shared();
    expect(await refusal(iot.registerDevice(request))).toEqual(invalidArgument(reason, field));
  });

  it.each([
    ["its key raw and as PEM", { publicKey, publicKeyPem }],
    [
      "the vendor's key raw and as PEM",
      { vendorPublicKey: vendor.publicKey, vendorPublicKeyPem: vendor.publicKeyPem },
    ],
    ["a key of its own for a simulated device", { simulated: true, publicKey }],
  ])("refuses %s at once", async (_what, request) => {
    const { iot } = await shared();
    expect(await refusal(iot.registerDevice(request))).toMatchObject({ code: "InvalidArgument" });
  });

  it("gives a retry with the same Idempotency-Key the same device and the same private key", async () => {
    const { iot } = await shared();
    const order = { headers: { "idempotency-key": randomBytes(16).toString("hex") } };
    const request = { deviceName: "retried" };
    const [first, again] = [
      await iot.registerDevice(request, order),
      await iot.registerDevice(request, order),
    ];
    const [one, two] = [first, again].map((answer) => toBinary(RegisterDeviceResponseSchema, answer));
    expect(two).toEqual(one);
    expect(again.privateKey).toHaveLength(32);
    const { devices } = await iot.listDevices({});
    expect(devices.filter(({ deviceName }) => deviceName === "retried")).toHaveLength(1);
    expect(await refusal(iot.registerDevice({ deviceName: "another" }, order))).toEqual({
      code: "AlreadyExists",
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
  });

  it("answers over REST with the JSON of the contract", async () => {
    const { rest } = await shared();
    const { status, json } = await rest("POST /api/iot/register-device", { deviceName: "over REST" });
    expect(status).toBe(200);
    expect(json).toEqual({
      status: "success",
      deviceId: expect.stringMatching(/^device-/),
      publicKey: expect.any(String),
      publicKeyPem: expect.stringContaining("BEGIN PUBLIC KEY"),
      algorithm: "ML-DSA-44",
      registrationStatus: "REGISTERED",
      privateKey: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
    });
  });
});

describeApp("a challenge in the store", (_start, shared) => {
  /** The rows of a device's challenges. */
  const readRows = ({ tamper }: TestApp, deviceId: string) =>
    tamper((db) => db.selectFrom("iot_challenges").selectAll().where("device_id", "=", deviceId).execute());

  const forgeries: Record<string, (own: string) => Partial<Schema["iot_challenges"]>> = {
    "unused again": () => ({ used_at_ms: null }),
    "unused again and without a tag": () => ({ used_at_ms: null, record_tag: "" }),
    "that of another device": (own) => ({ device_id: own }),
    "alive again": () => ({ expires_at_ms: Date.now() + 3_600_000 }),
  };

  it.each(Object.entries(forgeries))(
    "does not take a challenge that a writer of the store makes %s",
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

  it("does not take a used challenge whose row from before its use a writer of the store puts back", async () => {
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
  /** Puts the deaths of a device's challenges back in time, as the server would have written them then. */
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

  it("gives 32 bytes that live for 60 seconds, others each time", async () => {
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

  it("gives none to a device that is not there", async () => {
    const { iot } = await shared();
    expect(await refusal(iot.issueChallenge({ deviceId: noSuchDevice }))).toEqual(notFound);
  });

  it("keeps no challenge in the clear", async () => {
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

  it("authenticates over REST", async () => {
    const { iot, rest } = await shared();
    const { deviceId, sign } = await registerOwn(iot);
    const { json } = await rest("POST /api/iot/challenge", { deviceId });
    expect(json).toEqual({
      status: "success",
      challenge: expect.any(String),
      expiresAt: expect.stringMatching(/Z$/),
    });
    const challenge = String(json.challenge);
    const signature = base64(sign(Buffer.from(challenge, "base64")));
    const order = { deviceId, challenge, signature };
    expect(await rest("POST /api/iot/authenticate", order)).toMatchObject({
      status: 200,
      json: { status: "success", authenticated: true, reason: "", token: expect.any(String) },
    });
    const again = await rest("POST /api/iot/authenticate", order);
    expect(again.status).toBe(200);
    expect(again.json).toEqual({ status: "success", authenticated: false, reason: "CHALLENGE_USED" });
  });

  it("does not take a challenge twice", async () => {
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

  it("does not take another device's challenge, which stays that device's to use", async () => {
    const { iot } = await shared();
    const [owner, thief] = [await registerOwn(iot), await registerOwn(iot)];
    const { challenge } = await iot.issueChallenge({ deviceId: owner.deviceId });
    const stolen = { deviceId: thief.deviceId, challenge, signature: thief.sign(challenge) };
    const { authenticated, reason, token } = await iot.authenticate(stolen);
    expect({ authenticated, reason, token }).toEqual({ authenticated: false, reason: "CHALLENGE_FOREIGN" });
    const own = { deviceId: owner.deviceId, challenge, signature: owner.sign(challenge) };
    expect(await iot.authenticate(own)).toMatchObject({ authenticated: true });
  });

  it("does not take a challenge that is past its death", async () => {
    const app = await shared();
    const { deviceId, sign } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    await ageChallenges(app, deviceId, 60_000);
    const order = { deviceId, challenge, signature: sign(challenge) };
    const { authenticated, reason, token } = await app.iot.authenticate(order);
    expect({ authenticated, reason, token }).toEqual({ authenticated: false, reason: "CHALLENGE_EXPIRED" });
  });

  it("refuses a challenge from the future, as after a clock was set back, and takes it when its time has come", async () => {
    const app = await shared();
    const { deviceId, sign } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    const order = { deviceId, challenge, signature: sign(challenge) };
    await ageChallenges(app, deviceId, -3600_000);
    expect(await app.iot.authenticate(order)).toMatchObject({
      authenticated: false,
      reason: "CHALLENGE_EXPIRED",
    });
    await ageChallenges(app, deviceId, 3600_000);
    expect(await app.iot.authenticate(order)).toMatchObject({ authenticated: true });
  });

  it("takes a challenge that is about to die", async () => {
    const app = await shared();
    const { deviceId, sign } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    await ageChallenges(app, deviceId, 30_000);
    const order = { deviceId, challenge, signature: sign(challenge) };
    expect(await app.iot.authenticate(order)).toMatchObject({ authenticated: true });
  });

  it("forgets challenges an hour after their death", async () => {
    const app = await shared();
    const { deviceId, sign } = await registerOwn(app.iot);
    const { challenge } = await app.iot.issueChallenge({ deviceId });
    await ageChallenges(app, deviceId, 2 * 3600 * 1000);
    await app.iot.issueChallenge({ deviceId });
    const order = { deviceId, challenge, signature: sign(challenge) };
    expect(await app.iot.authenticate(order)).toMatchObject({ reason: "CHALLENGE_UNKNOWN" });
  });

  it("does not take a challenge that was never issued", async () => {
    const { iot } = await shared();
    const { deviceId, sign } = await registerOwn(iot);
    const challenge = Uint8Array.from(randomBytes(32));
    const order = { deviceId, challenge, signature: sign(challenge) };
    expect(await iot.authenticate(order)).toMatchObject({
      authenticated: false,
      reason: "CHALLENGE_UNKNOWN",
    });
  });

  it("uses a challenge up with a wrong signature", async () => {
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

  it("refuses a device that is not there", async () => {
    const { iot } = await shared();
    const order = { challenge: new Uint8Array(32), signature: new Uint8Array(2420) };
    expect(await refusal(iot.authenticate({ ...order, deviceId: noSuchDevice }))).toEqual(notFound);
  });

  it("refuses a signature of another length, and a challenge of another length, by name", async () => {
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

  it("authenticates one of 64 callers that race with one challenge", async () => {
    const { iot } = await shared();
    const { deviceId, sign } = await registerOwn(iot);
    const { challenge } = await iot.issueChallenge({ deviceId });
    const order = { deviceId, challenge, signature: sign(challenge) };
    const answers = await Promise.all(Array.from({ length: 64 }, () => iot.authenticate(order)));
    expect(countByReason(answers)).toEqual({ "": 1, CHALLENGE_USED: 63 });
    expect(answers.filter(({ token }) => token !== undefined)).toHaveLength(1);
  });
});

describeApp("iot.IotService.SendTelemetry", (_start, shared) => {
  it("verifies a reading that the device signed, and says when it came", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const beforeMs = Date.now();
    const answer = await iot.sendTelemetry(readingOf(device, telemetry));
    expect(answer).toMatchObject({ status: "success", verified: true, reason: "" });
    const receivedMs = timestampDate(present(answer.receivedAt)).getTime();
    expect(receivedMs).toBeGreaterThanOrEqual(beforeMs);
    expect(receivedMs).toBeLessThanOrEqual(Date.now());
  });

  it("does not verify a reading that was changed", async () => {
    const { iot } = await shared();
    const reading = readingOf(await registerOwn(iot), telemetry);
    const changed = { ...reading, telemetry: flipBit(telemetry) };
    expect(await iot.sendTelemetry(changed)).toMatchObject({ verified: false, reason: "SIGNATURE_INVALID" });
  });

  it("takes sequences that rise, and none that are equal or below", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const reasons: string[] = [];
    for (const sequence of [0, 0, 5, 5, 4, 6, 9007199254740991, 9007199254740991])
      reasons.push((await iot.sendTelemetry(readingOf(device, telemetry, sequence))).reason);
    const old = "SEQUENCE_OLD";
    expect(reasons).toEqual(["", old, "", old, old, "", "", old]);
  });

  it("takes a sequence as part of what the device signed", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const [plain, counted] = [readingOf(device, telemetry), readingOf(device, telemetry, 7)];
    const forged = { verified: false, reason: "SIGNATURE_INVALID" };
    expect(await iot.sendTelemetry({ ...plain, sequence: 7 })).toMatchObject(forged);
    expect(await iot.sendTelemetry({ ...counted, sequence: 8 })).toMatchObject(forged);
    const { sequence: _, ...uncounted } = counted;
    expect(await iot.sendTelemetry(uncounted)).toMatchObject(forged);
    expect(await iot.sendTelemetry(counted)).toMatchObject({ verified: true });
  });

  it("takes no readings without a sequence between those with one", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const reasons: string[] = [];
    for (const sequence of [3, undefined, 3, 4])
      reasons.push((await iot.sendTelemetry(readingOf(device, telemetry, sequence))).reason);
    expect(reasons).toEqual(["", "SEQUENCE_REQUIRED", "SEQUENCE_OLD", ""]);
    expect(await findListed(iot, device.deviceId)).toMatchObject({ readingForm: "NUMBERED" });
  });

  it.each([1.5, -1, 9007199254740992, Number.NaN, Number.POSITIVE_INFINITY])(
    "refuses the sequence %d",
    async (sequence) => {
      const { iot } = await shared();
      const reading = { ...readingOf(await registerOwn(iot), telemetry), sequence };
      expect(await refusal(iot.sendTelemetry(reading))).toEqual(invalidArgument("FIELD_INVALID", "sequence"));
    },
  );

  it("refuses a device that is not there, no telemetry, and a signature of another length", async () => {
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

  it("accepts each of 32 sequences at most once when two callers each race with all of them", async () => {
    const app = await shared();
    const device = await registerOwn(app.iot);
    const readings = Array.from({ length: 32 }, (_, i) => readingOf(device, telemetry, i));
    const twice = [...readings, ...readings];
    const answers = await Promise.all(twice.map((reading) => app.iot.sendTelemetry(reading)));
    const accepted = twice.filter((_, i) => answers[i]?.verified).map(({ sequence }) => sequence);
    expect(new Set(accepted).size).toBe(accepted.length);
    expect(accepted).toContain(31);
    expect(await lastSequenceOf(app, device)).toBe(31);
  });

  it("takes a reading over REST, with the sequence as a number", async () => {
    const { iot, rest } = await shared();
    const { signature, ...reading } = readingOf(await registerOwn(iot), telemetry, 12);
    const body = { ...reading, telemetry: base64(telemetry), signature: base64(signature) };
    const { status, json } = await rest("POST /api/iot/send-telemetry", body);
    expect({ status, json }).toEqual({
      status: 200,
      json: { status: "success", verified: true, reason: "", receivedAt: expect.stringMatching(/Z$/) },
    });
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
  /** Firmware of a vendor; its key goes along. */
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

  it("accepts what the vendor signed, with the hash of the image, for no device in particular", async () => {
    const { iot } = await shared();
    expect(await iot.updateFirmware(firmwareOf(vendor))).toMatchObject(accepted);
  });

  it("accepts the vendor's key as PEM", async () => {
    const { iot } = await shared();
    const { vendorPublicKey: _, ...firmware } = firmwareOf(vendor);
    const request = { ...firmware, vendorPublicKeyPem: vendor.publicKeyPem };
    expect(await iot.updateFirmware(request)).toMatchObject(accepted);
  });

  it("rejects an image that was changed, with the hash of what came", async () => {
    const { iot } = await shared();
    const changed = flipBit(image);
    expect(await iot.updateFirmware({ ...firmwareOf(vendor), firmware: changed })).toMatchObject({
      ...rejected("SIGNATURE_INVALID"),
      firmwareHash: sha256(changed),
    });
  });

  it("rejects a signature over the image itself instead of its hash", async () => {
    const { iot } = await shared();
    const request = { ...firmwareOf(vendor), signature: vendor.sign(image) };
    expect(await iot.updateFirmware(request)).toMatchObject(rejected("SIGNATURE_INVALID"));
  });

  it("rejects another vendor's signature under the pinned vendor's key, and another key outright", async () => {
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
    const { vendorPublicKey: _, ...firmware } = firmwareOf(vendor);
    expect(await iot.updateFirmware({ ...firmware, deviceId })).toMatchObject(accepted);
    const foreign = { ...firmware, deviceId, signature: signImage(otherVendor, image) };
    expect(await iot.updateFirmware(foreign)).toMatchObject(rejected("SIGNATURE_INVALID"));
  });

  it("pins a vendor whose key was sent as PEM", async () => {
    const { iot } = await shared();
    const { deviceId } = await iot.registerDevice({ vendorPublicKeyPem: vendor.publicKeyPem });
    const foreign = iot.updateFirmware({ ...firmwareOf(otherVendor), deviceId });
    expect(await foreign).toMatchObject(rejected("VENDOR_MISMATCH"));
  });

  it("refuses firmware without a key for a device without a pinned vendor", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot);
    const { vendorPublicKey: _, ...firmware } = firmwareOf(vendor);
    expect(await refusal(iot.updateFirmware({ ...firmware, deviceId }))).toEqual({
      code: "FailedPrecondition",
      reason: "VENDOR_MISSING",
    });
  });

  it("rejects a version below the installed one, and takes an equal and a higher one", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const reasons: string[] = [];
    for (const version of [5, 4, 5, 6, 0])
      reasons.push((await iot.updateFirmware({ ...firmwareOf(vendor), deviceId, version })).reason);
    expect(reasons).toEqual(["", "VERSION_ROLLBACK", "", "", "VERSION_ROLLBACK"]);
    expect(await findListed(iot, deviceId)).toMatchObject({
      firmwareVersion: 6,
      firmwareHash: sha256(image),
    });
  });

  it("keeps the highest of 20 versions that race", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const firmware = { ...firmwareOf(vendor), deviceId };
    await Promise.all(
      Array.from({ length: 20 }, (_, version) => iot.updateFirmware({ ...firmware, version })),
    );
    expect((await findListed(iot, deviceId)).firmwareVersion).toBe(19);
  });

  it("keeps what is installed when firmware is rejected", async () => {
    const { iot } = await shared();
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    await iot.updateFirmware({ ...firmwareOf(vendor), deviceId, version: 5 });
    await iot.updateFirmware({ ...firmwareOf(vendor, flipBit(image)), deviceId, version: 4 });
    expect(await findListed(iot, deviceId)).toMatchObject({
      firmwareVersion: 5,
      firmwareHash: sha256(image),
    });
  });

  const firmware = firmwareOf(vendor);
  const { vendorPublicKey: _, ...keyless } = firmware;
  it.each([
    ["a device that is not there", { ...firmware, deviceId: noSuchDevice }, "NotFound", "DEVICE_NOT_FOUND"],
    [
      "a vendor's key of another length",
      { ...firmware, vendorPublicKey: new Uint8Array(2591) },
      "InvalidArgument",
      "KEY_INVALID",
    ],
    [
      "a signature of another length",
      { ...firmware, signature: new Uint8Array(4626) },
      "InvalidArgument",
      "LENGTH_INVALID",
    ],
    ["no image", { ...firmware, firmware: new Uint8Array() }, "InvalidArgument", "FIELD_INVALID"],
  ])("refuses %s", async (_what, request, code, reason) => {
    const { iot } = await shared();
    expect(await refusal(iot.updateFirmware(request))).toMatchObject({ code, reason });
  });

  it.each([
    ["neither a key nor a device", keyless],
    ["a version without a device", { ...firmware, version: 1 }],
    ["a key raw and as PEM", { ...firmware, vendorPublicKeyPem: vendor.publicKeyPem }],
  ])("refuses %s", async (_what, request) => {
    const { iot } = await shared();
    expect(await refusal(iot.updateFirmware(request))).toMatchObject({ code: "InvalidArgument" });
  });

  it("answers over REST", async () => {
    const { rest } = await shared();
    const body = {
      firmware: base64(image),
      signature: base64(firmware.signature),
      vendorPublicKey: base64(vendor.publicKey),
    };
    const { status, json } = await rest("POST /api/iot/firmware-update", body);
    expect({ status, json }).toEqual({ status: 200, json: accepted });
  });
});

describeApp("iot.IotService.ListDevices", (start) => {
  it("gives pages in the order of registration, with all that is known of each device", async () => {
    const { iot } = await start();
    const device = makeSigner("ml-dsa-44");
    const request = { deviceName: "meter 0", deviceType: "meter", publicKey: device.publicKey };
    const first = await iot.registerDevice(request);
    for (let i = 1; i < 5; i++) await iot.registerDevice({ deviceName: `meter ${i}`, simulated: true });
    const pages = [await iot.listDevices({ pageSize: 2 })];
    for (let page = pages[0]; page?.nextPageToken; pages.push(page))
      page = await iot.listDevices({ pageSize: 2, pageToken: page.nextPageToken });
    expect(pages.map(({ devices }) => devices.map(({ deviceName }) => deviceName))).toEqual([
      ["meter 0", "meter 1"],
      ["meter 2", "meter 3"],
      ["meter 4"],
    ]);
    expect(pages.map(({ totalSize }) => totalSize)).toEqual([5, 5, 5]);
    const listed = present(pages[0]?.devices[0]);
    expect(listed).toMatchObject({
      deviceId: first.deviceId,
      algorithm: "ML-DSA-44",
      registrationStatus: "REGISTERED",
      deviceType: "meter",
      simulated: false,
    });
    expect(Uint8Array.from(listed.publicKey)).toEqual(device.publicKey);
    const absent = [listed.lastSeenAt, listed.firmwareVersion, listed.firmwareHash];
    expect(absent).toEqual([undefined, undefined, undefined]);
    expect(pages[0]?.devices[1]?.simulated).toBe(true);
  });

  it("tells over REST with numbers, and leaves out what a device never did", async () => {
    const { iot, rest } = await start();
    const { deviceId } = await iot.registerDevice({ deviceName: "meter" });
    const { json } = await rest("GET /api/iot/devices?pageSize=1");
    expect(json).toEqual({
      status: "success",
      devices: [
        {
          deviceId,
          publicKey: expect.any(String),
          algorithm: "ML-DSA-44",
          registrationStatus: "REGISTERED",
          deviceName: "meter",
          deviceType: "",
          simulated: false,
          registeredAt: expect.stringMatching(/Z$/),
        },
      ],
      nextPageToken: "",
      totalSize: 1,
    });
    expect(restRefusal(await rest("GET /api/iot/devices?pageSize=1001"))).toEqual({
      status: 400,
      code: "INVALID_ARGUMENT",
      reason: "FIELD_INVALID",
      fields: ["pageSize"],
    });
  });

  it("refuses a page token of another list", async () => {
    const { iot, vpn } = await start();
    await vpn.registerPeer({});
    await vpn.registerPeer({});
    const { nextPageToken: pageToken } = await vpn.listTunnels({ pageSize: 1 });
    expect(pageToken).not.toBe("");
    expect(await refusal(iot.listDevices({ pageToken }))).toEqual(
      invalidArgument("FIELD_INVALID", "pageToken"),
    );
  });

  it.each<[string, (iot: IotClient, device: OwnDevice) => Promise<unknown>]>([
    ["authenticated", authenticate],
    ["sent a reading", (iot, device) => iot.sendTelemetry(readingOf(device, telemetry))],
  ])("tells when a device last %s", async (_deed, act) => {
    const { iot } = await start();
    const device = await registerOwn(iot);
    const beforeMs = Date.now();
    await act(iot, device);
    const { lastSeenAt } = await findListed(iot, device.deviceId);
    const seenMs = timestampDate(present(lastSeenAt)).getTime();
    expect(seenMs).toBeGreaterThanOrEqual(beforeMs);
    expect(seenMs).toBeLessThanOrEqual(Date.now());
  });

  it("does not tell that a device was seen when what it sent did not verify", async () => {
    const { iot } = await start();
    const device = await registerOwn(iot);
    await iot.sendTelemetry({ ...readingOf(device, telemetry), telemetry: flipBit(telemetry) });
    const { challenge } = await iot.issueChallenge({ deviceId: device.deviceId });
    await iot.authenticate({ deviceId: device.deviceId, challenge, signature: device.sign(telemetry) });
    expect((await findListed(iot, device.deviceId)).lastSeenAt).toBeUndefined();
  });

  it("knows devices, sequences and simulated keys again after a restart", async () => {
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
    const { iot, rest } = await start();
    await registerOwn(iot);
    await registerOwn(iot);
    const up = { status: "success", serviceStatus: "UP", deviceCount: 2 };
    const both = { mlDsa44Available: true, mlDsa87Available: true };
    expect(await iot.getHealth({})).toMatchObject({ ...up, ...both });
    expect((await rest("GET /api/iot/health")).json).toEqual({ ...up, ...both });
  });
});

describePostgres("iot.IotService.GetHealth and vpn.VpnService.GetHealth", () => {
  it("are DOWN, without counts, while the database is away", { timeout }, async () => {
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

describeApp("a device whose record was changed behind the back of iot.IotService", (start, shared) => {
  it.each(["public_key", "vendor_public_key"] as const)(
    "is refused if it was its %s, and other devices are not",
    async (column) => {
      const { iot, tamper } = await shared();
      const [hurt, sound] = [await registerOwn(iot), await registerOwn(iot)];
      const foreign = makeSigner(column === "public_key" ? "ml-dsa-44" : "ml-dsa-87");
      await tamper((db) =>
        db
          .updateTable("iot_devices")
          .set({ [column]: foreign.publicKey })
          .where("device_id", "=", hurt.deviceId)
          .execute(),
      );
      const signature = foreign.sign(telemetry).subarray(0, 2420);
      const { deviceId } = hurt;
      expect(await refusal(iot.issueChallenge({ deviceId }))).toEqual(damaged);
      expect(await refusal(iot.sendTelemetry({ deviceId, telemetry, signature }))).toEqual(damaged);
      expect(await authenticate(iot, sound)).toMatchObject({ authenticated: true });
      expect(await iot.sendTelemetry(readingOf(sound, telemetry))).toMatchObject({ verified: true });
    },
  );

  it("is not listed as if nothing had happened if it was its public key", async () => {
    const { iot, tamper } = await start();
    const { deviceId } = await registerOwn(iot);
    const { publicKey } = makeSigner("ml-dsa-44");
    await tamper((db) => db.updateTable("iot_devices").set({ public_key: publicKey }).execute());
    const listed = await iot.listDevices({}).then(({ devices }) => devices);
    const shown = listed.find((device) => device.deviceId === deviceId);
    expect(Uint8Array.from(shown?.publicKey ?? [])).not.toEqual(publicKey);
  });

  it("is refused if its last sequence was set back, and readings of others that come meanwhile are not", async () => {
    const { iot, tamper } = await shared();
    const [hurt, sound] = [await registerOwn(iot), await registerOwn(iot)];
    await iot.sendTelemetry(readingOf(hurt, telemetry, 9));
    await tamper((db) =>
      db
        .updateTable("iot_devices")
        .set({ last_sequence: 1 })
        .where("device_id", "=", hurt.deviceId)
        .execute(),
    );
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, async (_, i) => [
        await refusal(iot.sendTelemetry(readingOf(hurt, telemetry, 5))),
        (await iot.sendTelemetry(readingOf(sound, telemetry))).verified,
        i,
      ]),
    );
    expect(outcomes).toEqual(Array.from({ length: 10 }, (_, i) => [damaged, true, i]));
  });

  it("is refused if its firmware version was set back", async () => {
    const { iot, tamper } = await shared();
    const vendor = makeSigner("ml-dsa-87");
    const { deviceId } = await registerOwn(iot, vendor.publicKey);
    const firmware = bytesOf("image");
    const signature = vendor.sign(Buffer.from(sha256(firmware), "hex"));
    await iot.updateFirmware({ deviceId, firmware, signature, version: 9 });
    await tamper((db) =>
      db.updateTable("iot_devices").set({ firmware_version: 1 }).where("device_id", "=", deviceId).execute(),
    );
    expect(await refusal(iot.updateFirmware({ deviceId, firmware, signature, version: 2 }))).toEqual(damaged);
  });

  it.each<[string, (app: TestApp, identity: string, other: string) => Promise<unknown>]>([
    [
      "was changed",
      ({ tamper }, identity) =>
        tamper(async (db) => {
          const row = await db
            .selectFrom("sealed_secrets")
            .select("ciphertext")
            .where("identity", "=", identity)
            .executeTakeFirstOrThrow();
          const ciphertext = flipBit(row.ciphertext);
          await db
            .updateTable("sealed_secrets")
            .set({ ciphertext })
            .where("identity", "=", identity)
            .execute();
        }),
    ],
    [
      "is gone",
      ({ tamper }, identity) =>
        tamper((db) => db.deleteFrom("sealed_secrets").where("identity", "=", identity).execute()),
    ],
    [
      "is that of another device",
      ({ tamper }, identity, other) =>
        tamper(async (db) => {
          const { identity: _, ...row } = await db
            .selectFrom("sealed_secrets")
            .selectAll()
            .where("identity", "=", other)
            .executeTakeFirstOrThrow();
          await db.updateTable("sealed_secrets").set(row).where("identity", "=", identity).execute();
        }),
    ],
  ])("cannot sign if its sealed secret %s, and others can", async (_what, change) => {
    const app = await shared();
    const [hurt, sound] = [
      await app.iot.registerDevice({ simulated: true }),
      await app.iot.registerDevice({ simulated: true }),
    ];
    const identityOf = ({ deviceId }: { readonly deviceId: string }) => `iot_devices/${deviceId}/secret-key`;
    await change(app, identityOf(hurt), identityOf(sound));
    const signAs = (deviceId: string) => app.iot.simulatedSign({ deviceId, data: telemetry });
    expect(await refusal(signAs(hurt.deviceId))).toEqual(damaged);
    const { signature } = await signAs(sound.deviceId);
    expect(verifiesOutside(sound.publicKeyPem, telemetry, signature)).toBe(true);
  });
});

describeReplicas("two servers of iot.IotService", (startTwo) => {
  it("authenticate one of 64 callers that race with one challenge", async () => {
    const apps = await startTwo();
    const { deviceId, sign } = await registerOwn(present(apps[0]).iot);
    const { challenge } = await present(apps[1]).iot.issueChallenge({ deviceId });
    const order = { deviceId, challenge, signature: sign(challenge) };
    const calls = Array.from({ length: 64 }, (_, i) => present(apps[i % 2]).iot.authenticate(order));
    expect(countByReason(await Promise.all(calls))).toEqual({ "": 1, CHALLENGE_USED: 63 });
  });

  it("accept each sequence at most once, and the highest is the last", async () => {
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
