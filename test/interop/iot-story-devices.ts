/** The chapters of a story that make devices, and list them. */
import { createPrivateKey, createPublicKey, randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { DeviceSchema } from "#gen/iot/iot_service_pb.ts";
import { rawOf } from "../services/node-crypto.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { expectRecent, type Stage } from "./iot-story.ts";
import { isSignatureOf, rawKeyOf } from "./outside.ts";

const algorithm = "ML-DSA-44";
const registrationStatus = "REGISTERED";
const deviceIdForm = /^device-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function tellOfRegistration({ iot, keep, idOf, meter, camera, vendor }: Stage): void {
  const registered = {
    status: "success",
    deviceId: expect.stringMatching(deviceIdForm),
    algorithm,
    registrationStatus,
  };

  describe("RegisterDevice", () => {
    it("takes a device's own public key and its vendor's, and tells no private key", async () => {
      const shown = { deviceName: "meter – Zürich", deviceType: "sensor", publicKey: meter.publicKey };
      const answer = await iot.registerDevice({ ...shown, vendorPublicKey: vendor.publicKey });
      const { publicKey, publicKeyPem } = meter;
      expect(answer).toMatchObject({ ...registered, publicKey, publicKeyPem });
      expect(answer.privateKey).toBeUndefined();
      keep("meter", { ...shown, deviceId: answer.deviceId, algorithm, registrationStatus });
    });

    it("takes both keys as PEM", async () => {
      const { publicKey, publicKeyPem } = camera;
      const answer = await iot.registerDevice({ publicKeyPem, vendorPublicKeyPem: vendor.publicKeyPem });
      expect(answer).toMatchObject({ ...registered, publicKey, publicKeyPem });
      expect(answer.privateKey).toBeUndefined();
      keep("camera", { deviceId: answer.deviceId, publicKey, algorithm, registrationStatus });
    });

    it("makes a pair whose seed of 32 bytes makes the public key in node:crypto too", async () => {
      const { deviceId, publicKey, ...answer } = await iot.registerDevice({ deviceName: "lamp" });
      const seed = Buffer.from(answer.privateKey ?? []);
      const made = createPrivateKey({ key: seed, format: "raw-seed", asymmetricKeyType: "ml-dsa-44" });
      expect(seed).toHaveLength(32);
      expect(rawOf(createPublicKey(made))).toEqual(publicKey);
      expect(rawKeyOf(answer.publicKeyPem)).toEqual(publicKey);
      expect(answer).toMatchObject({ status: "success", algorithm, registrationStatus });
      keep("lamp", { deviceName: "lamp", deviceId, publicKey, algorithm, registrationStatus });
    });

    it("makes a device that SimulatedSign signs as, and tells no private key of it", async () => {
      const answer = await iot.registerDevice({ simulated: true });
      const { deviceId, publicKey, publicKeyPem } = answer;
      expect(answer).toMatchObject({ ...registered, publicKey: rawKeyOf(publicKeyPem) });
      expect(answer.privateKey).toBeUndefined();
      const data = bytesOf("21.5 °C");
      const { signature } = await iot.simulatedSign({ deviceId, data });
      expect(isSignatureOf(publicKeyPem, signature, data)).toBe(true);
      expect(isSignatureOf(publicKeyPem, signature, flipBit(data))).toBe(false);
      keep("robot", { simulated: true, deviceId, publicKey, algorithm, registrationStatus });
    });

    it("makes one device with an Idempotency-Key, however often, and tells its private key again", async () => {
      const once = { headers: { "Idempotency-Key": randomUUID() } };
      const first = await iot.registerDevice({ deviceType: "valve" }, once);
      const { deviceId, publicKey } = first;
      expect(first.privateKey).toHaveLength(32);
      expect(await iot.registerDevice({ deviceType: "valve" }, once)).toEqual(first);
      expect(await refusal(iot.registerDevice({ deviceType: "pump" }, once))).toEqual({
        code: "AlreadyExists",
        reason: "IDEMPOTENCY_KEY_REUSED",
      });
      keep("valve", { deviceType: "valve", deviceId, publicKey, algorithm, registrationStatus });
    });
  });

  it("SimulatedSign does not sign as a device whose key the service made but does not have", async () => {
    const call = iot.simulatedSign({ deviceId: idOf("lamp"), data: bytesOf("x") });
    expect(await refusal(call)).toEqual({ code: "FailedPrecondition", reason: "DEVICE_NOT_SIMULATED" });
  });
}

export function tellOfLists(stage: Stage): void {
  const { iot, past, known } = stage;
  describe("ListDevices", () => {
    it("lists all devices in the order of their registration, with what became of them", async () => {
      const { devices, totalSize, nextPageToken } = await iot.listDevices({});
      const ofStory = devices.slice(past().devices);
      for (const { registeredAt } of ofStory) expectRecent(registeredAt, stage);
      const shown = ofStory.map((device) => ({ ...device, registeredAt: undefined }));
      expect(shown).toEqual(known().map((device) => create(DeviceSchema, device)));
      expect([totalSize, nextPageToken]).toEqual([past().devices + known().length, ""]);
    });

    it("lists them in pages", async () => {
      const before = past().devices;
      const pageSize = before + 3;
      const first = await iot.listDevices({ pageSize });
      const rest = await iot.listDevices({ pageSize, pageToken: first.nextPageToken });
      const listed = [...first.devices.slice(before), ...rest.devices].map(({ deviceId }) => deviceId);
      expect(listed).toEqual(known().map(({ deviceId }) => deviceId));
      expect([first.devices.length, first.totalSize]).toEqual([pageSize, before + 5]);
      expect([rest.devices.length, rest.totalSize, rest.nextPageToken]).toEqual([2, before + 5, ""]);
    });
  });
}

export function tellOfHealth({ iot, past, known }: Stage): void {
  describe("GetHealth", () => {
    it("tells that the service is up, how many devices it holds, and that both algorithms work", async () => {
      expect(await iot.getHealth({})).toMatchObject({
        serviceStatus: "UP",
        deviceCount: past().devices + known().length,
        mlDsa44Available: true,
        mlDsa87Available: true,
      });
    });
  });
}
