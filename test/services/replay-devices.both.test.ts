/**
 * Attacks that reuse what a device or its vendor signed: replays in a different form, and in a different
 * role.
 */

import { expect, it } from "vitest";
import type { Config } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { makeChallenge } from "../../src/services/iot/challenges.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import type { Store } from "../../src/store/store.ts";
import { bytesOf } from "../support/bytes.ts";
import { openStore } from "../support/open-store.ts";
import { refusal } from "../support/refusal.ts";
import { streamOf } from "../support/streams.ts";
import { present } from "./answers.ts";
import { describeApp, describeReplicas, findListed, type IotClient } from "./devices-and-tunnels.ts";
import { makeSigner, verifiesOutside } from "./node-crypto.ts";
import { type OwnDevice, registerOwn, signedReading } from "./own-device.ts";

const telemetry = bytesOf('{"celsius":21.5}');
const plainReading = ({ deviceId, sign }: OwnDevice) => ({ deviceId, telemetry, signature: sign(telemetry) });
const numberedReading = ({ deviceId, sign }: OwnDevice, sequence: number) => ({
  deviceId,
  telemetry,
  sequence,
  signature: sign(signedReading(telemetry, sequence)),
});

async function reasonsOf(verdicts: AsyncIterable<{ readonly reason: string }>): Promise<string[]> {
  const reasons: string[] = [];
  for await (const { reason } of verdicts) reasons.push(reason);
  return reasons;
}

describeApp("a device that numbers its readings", (_start, shared) => {
  it("cannot be replayed without the number, as telemetry with 8 extra bytes", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const recorded = numberedReading(device, 1);
    expect(await iot.sendTelemetry(recorded)).toMatchObject({ verified: true, reason: "" });
    const { deviceId, signature } = recorded;
    const replayed = { deviceId, signature, telemetry: signedReading(telemetry, 1) };
    const refused = { verified: false, reason: "SEQUENCE_REQUIRED" };
    expect(await iot.sendTelemetry(replayed)).toMatchObject(refused);
    expect(await iot.sendTelemetry(plainReading(device))).toMatchObject(refused);
    const streamed = iot.streamTelemetry(streamOf({ reading: replayed }, { reading: replayed }));
    expect(await reasonsOf(streamed)).toEqual(["SEQUENCE_REQUIRED", "SEQUENCE_REQUIRED"]);
    expect(await iot.sendTelemetry(numberedReading(device, 2))).toMatchObject({ verified: true });
  });
});

describeApp("a device that does not number its readings", (_start, shared) => {
  it("has no form before its first verified reading", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const forged = { ...numberedReading(device, 1), telemetry: bytesOf("forged") };
    expect((await iot.sendTelemetry(forged)).reason).toBe("SIGNATURE_INVALID");
    expect(await iot.sendTelemetry(plainReading(device))).toMatchObject({ verified: true });
  });

  it("or does: if first readings race in both forms, one form wins", async () => {
    const { iot } = await shared();
    await expectOneForm(iot, [iot, iot]);
  });
});

/** Sends readings in both forms at once, to each of some servers. */
async function expectOneForm(registrar: IotClient, iots: readonly IotClient[]): Promise<void> {
  const device = await registerOwn(registrar);
  const readings = Array.from({ length: 16 }, (_, i) =>
    i % 2 ? plainReading(device) : numberedReading(device, i),
  );
  const verdicts = await Promise.all(
    readings.map(async (reading, i) => ({
      form: "sequence" in reading ? "numbered" : "plain",
      ...(await present(iots[i % 4 < 2 ? 0 : 1]).sendTelemetry(reading)),
    })),
  );
  const believed = new Set(verdicts.filter(({ verified }) => verified).map(({ form }) => form));
  expect(believed.size).toBe(1);
  const others = verdicts.filter(({ form }) => !believed.has(form));
  expect(new Set(others.map(({ reason }) => reason))).toEqual(
    new Set([believed.has("plain") ? "SEQUENCE_NOT_EXPECTED" : "SEQUENCE_REQUIRED"]),
  );
}

describeReplicas("two servers that receive a device's first readings", (startTwo) => {
  it("settle on one form", async () => {
    const [one, two] = await startTwo();
    await expectOneForm(one.iot, [one.iot, two.iot]);
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

/** Opens the store of a closed app. */
async function withStore<Result>(config: Config, use: (store: Store) => Result): Promise<Result> {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({ ...storeSettings(config), provider });
  try {
    return use(store);
  } finally {
    await store.close();
    await provider.close();
  }
}

describeApp("a response to a challenge", (start, shared) => {
  const asReading = (deviceId: string, challenge: Uint8Array, signature: Uint8Array) => ({
    deviceId,
    telemetry: Uint8Array.from(challenge),
    signature: Uint8Array.from(signature),
  });
  const refused = { verified: false, reason: "CHALLENGE_AS_READING" };

  it("is not a reading: neither before nor after its use, nor in a stream", async () => {
    const { iot } = await shared();
    const { deviceId, sign } = await registerOwn(iot);
    const { challenge } = await iot.issueChallenge({ deviceId });
    const signature = sign(challenge);
    const reading = asReading(deviceId, challenge, signature);
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
    expect(await iot.authenticate({ deviceId, challenge, signature })).toMatchObject({ authenticated: true });
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
    expect(await reasonsOf(iot.streamTelemetry(streamOf({ reading })))).toEqual([refused.reason]);
  });

  it("does not determine whether the device numbers its readings", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    const { challenge } = await iot.issueChallenge({ deviceId: device.deviceId });
    await iot.sendTelemetry(asReading(device.deviceId, challenge, device.sign(challenge)));
    expect(await iot.sendTelemetry(numberedReading(device, 1))).toMatchObject({ verified: true });
  });

  it("is not a reading of another device that received the challenge", async () => {
    const { iot } = await shared();
    const [one, two] = [await registerOwn(iot), await registerOwn(iot)];
    const { challenge } = await iot.issueChallenge({ deviceId: one.deviceId });
    const reading = asReading(two.deviceId, challenge, two.sign(challenge));
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
  });

  it("is not a reading after the store has forgotten the challenge, nor after a restart", async () => {
    const first = await start();
    const { deviceId, sign } = await registerOwn(first.iot);
    const { challenge } = await first.iot.issueChallenge({ deviceId });
    const reading = asReading(deviceId, challenge, sign(challenge));
    await first.tamper((db) => db.deleteFrom("iot_challenges").execute());
    expect(await first.iot.sendTelemetry(reading)).toMatchObject(refused);
    await first.close();
    const { iot } = await start(first.config);
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
  });

  it("is not a numbered reading whose number is the challenge's first 8 bytes", async () => {
    const first = await start();
    const { deviceId, sign } = await registerOwn(first.iot);
    await first.close();
    // One challenge in 2,048 begins with 11 zero bits, so that its first 8 bytes are a valid number.
    const challenge = await withStore(first.config, (store) => makeChallenge(store, new Uint8Array(16)));
    const { iot } = await start(first.config);
    const telemetry = Uint8Array.from(challenge.subarray(8));
    const reading = { deviceId, sequence: 0, telemetry, signature: sign(challenge) };
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
  });

  it("uses 32 bytes that look random", async () => {
    const { iot } = await shared();
    // A device may have 20 open challenges.
    const devices = await Promise.all(Array.from({ length: 4 }, () => registerOwn(iot)));
    const challenges = await Promise.all(
      Array.from({ length: 64 }, async (_, i) => {
        const { deviceId } = devices[i % devices.length] as OwnDevice;
        return (await iot.issueChallenge({ deviceId })).challenge;
      }),
    );
    // 64 × 256 bits, half of them ones: the standard deviation is 64.
    const ones = challenges.flatMap((bytes) => [...bytes]).join(" ");
    const count = ones
      .split(" ")
      .reduce((sum, byte) => sum + (Number(byte).toString(2).match(/1/g)?.length ?? 0), 0);
    expect(Math.abs(count - 8192)).toBeLessThan(640);
    for (let at = 0; at < 32; at += 4)
      expect(
        new Set(challenges.map((bytes) => Buffer.from(bytes.subarray(at, at + 4)).toString("hex"))).size,
      ).toBe(64);
  });
});

describeApp("a device with signing contexts", (_start, shared) => {
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
    const { iot } = await shared();
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
      const { iot } = await shared();
      const { deviceId, sign } = await registerWithContexts(iot);
      const right = sequence === undefined ? contexts.READING : contexts.NUMBERED_READING;
      const message = sequence === undefined ? telemetry : signedReading(telemetry, sequence);
      const reading = (context: string) => ({
        deviceId,
        telemetry,
        signature: sign(message, context),
        ...(sequence !== undefined && { sequence }),
      });
      for (const context of ["", ...Object.values(contexts)].filter((context) => context !== right))
        expect((await iot.sendTelemetry(reading(context))).reason).toBe(forged);
      expect(await iot.sendTelemetry(reading(right))).toMatchObject({ verified: true });
    },
  );

  it("cannot have its first numbered reading passed off as unnumbered", async () => {
    const { iot } = await shared();
    const { deviceId, sign } = await registerWithContexts(iot);
    const signature = sign(signedReading(telemetry, 1), contexts.NUMBERED_READING);
    const stripped = { deviceId, telemetry: signedReading(telemetry, 1), signature };
    expect((await iot.sendTelemetry(stripped)).reason).toBe(forged);
    const reading = { deviceId, telemetry, sequence: 1, signature };
    expect(await iot.sendTelemetry(reading)).toMatchObject({ verified: true });
  });

  it("is listed as such, and as damaged if its contexts are removed", async () => {
    const { iot, tamper } = await shared();
    const { deviceId, sign } = await registerWithContexts(iot);
    expect((await findListed(iot, deviceId)).signingContexts).toBe(true);
    await tamper((db) =>
      db.updateTable("iot_devices").set({ signing_contexts: 0 }).where("device_id", "=", deviceId).execute(),
    );
    const reading = { deviceId, telemetry, signature: sign(telemetry) };
    expect(await refusal(iot.sendTelemetry(reading))).toEqual({ code: "DataLoss", reason: "RECORD_DAMAGED" });
    expect((await findListed(iot, deviceId)).registrationStatus).toBe("DAMAGED");
  });

  it("requires a purpose in SimulatedSign, which selects the context", async () => {
    const { iot } = await shared();
    const { deviceId, publicKeyPem } = await iot.registerDevice({ simulated: true, signingContexts: true });
    for (const [purpose, context] of Object.entries(contexts)) {
      const { signature } = await iot.simulatedSign({ deviceId, data: telemetry, purpose });
      expect(verifiesOutside(publicKeyPem, telemetry, signature, Buffer.from(context))).toBe(true);
    }
    for (const purpose of ["", "FIRMWARE"])
      expect(await refusal(iot.simulatedSign({ deviceId, data: telemetry, purpose }))).toEqual({
        code: "InvalidArgument",
        reason: "FIELD_INVALID",
        fields: ["purpose"],
      });
    const { challenge } = await iot.issueChallenge({ deviceId });
    const { signature } = await iot.simulatedSign({ deviceId, data: challenge, purpose: "CHALLENGE" });
    expect(await iot.authenticate({ deviceId, challenge, signature })).toMatchObject({ authenticated: true });
  });

  it("is opted in individually: another simulated device signs with an empty context, whatever the purpose", async () => {
    const { iot } = await shared();
    const { deviceId, publicKeyPem } = await iot.registerDevice({ simulated: true });
    for (const purpose of ["", "CHALLENGE", "NUMBERED_READING"]) {
      const { signature } = await iot.simulatedSign({ deviceId, data: telemetry, purpose });
      expect(verifiesOutside(publicKeyPem, telemetry, signature)).toBe(true);
    }
  });
});
