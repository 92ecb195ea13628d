/** Attacks that reuse what a device signed: replays in a different form, and in a different role. */
import { expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { makeChallenge } from "../../src/services/iot/challenges.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { bytesOf } from "../support/bytes.ts";
import { openStore } from "../support/open-store.ts";
import { refusal } from "../support/refusal.ts";
import { damaged, invalid } from "../support/refusals.ts";
import { streamOf } from "../support/streams.ts";
import { describeApp, describeReplicas, findListed, type IotClient } from "./devices-and-tunnels.ts";
import { makeSigner, verifiesOutside } from "./node-crypto.ts";
import {
  type OwnDevice,
  readingOf,
  reasonsOf,
  registerOwn,
  respond,
  signedReading,
  telemetry,
} from "./own-device.ts";

describeApp("a device that numbers its readings", (_start, shared) => {
  it("cannot be replayed without the number, as telemetry with 8 extra bytes", async () => {
    const { iot } = await shared();
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

describeApp("a device that does not number its readings", (_start, shared) => {
  it("has no form before its first verified reading", async () => {
    const { iot } = await shared();
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

describeApp("a response to a challenge", (start, shared) => {
  /** Requests a challenge for a device; returns the response as a reading. */
  const respondAsReading = async (iot: IotClient, device: OwnDevice) => {
    const { challenge: telemetry, ...response } = await respond(iot, device);
    return { ...response, telemetry };
  };
  const refused = { verified: false, reason: "CHALLENGE_AS_READING" };

  it("is not a reading: neither before nor after its use, nor in a stream", async () => {
    const { iot } = await shared();
    const { challenge, ...response } = await respond(iot, await registerOwn(iot));
    const reading = { ...response, telemetry: challenge };
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
    expect(await iot.authenticate({ ...response, challenge })).toMatchObject({ authenticated: true });
    expect(await iot.sendTelemetry(reading)).toMatchObject(refused);
    expect(await reasonsOf(iot.streamTelemetry(streamOf({ reading })))).toEqual([refused.reason]);
  });

  it("does not determine whether the device numbers its readings", async () => {
    const { iot } = await shared();
    const device = await registerOwn(iot);
    await iot.sendTelemetry(await respondAsReading(iot, device));
    expect(await iot.sendTelemetry(readingOf(device, 1))).toMatchObject({ verified: true });
  });

  it("is not a reading of another device that received the challenge", async () => {
    const { iot } = await shared();
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
    const { iot } = await shared();
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
    expect(await refusal(iot.sendTelemetry(reading))).toEqual(damaged);
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
      expect(await refusal(iot.simulatedSign({ deviceId, data: telemetry, purpose }))).toEqual(
        invalid("purpose"),
      );
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
