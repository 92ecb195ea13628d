/** Example requests for the API description; the key management service signs as the firmware vendor. */
import { createHash } from "node:crypto";
import { answered, base64, example, someBytes, someId } from "../../calls/example.ts";

const deviceId = answered("register-device", "deviceId", someId("device"));
const challenge = answered("issue-challenge", "challenge", base64("these are 32 bytes, all of them!"));
const telemetry = base64('{"temperature":21.5}');
const firmware = base64("the image of version 1");
const imageHash = createHash("sha256").update(firmware, "base64").digest();

export const examples = [
  example("iot.IotService.RegisterDevice", "register-device", "Registers a simulated device.", {
    deviceName: "thermometer",
    deviceType: "sensor",
    simulated: true,
    signingContexts: true,
  }),
  example("iot.IotService.IssueChallenge", "issue-challenge", "Requests a challenge.", { deviceId }),
  example("iot.IotService.SimulatedSign", "sign-challenge", "Signs the challenge as the device.", {
    deviceId,
    data: challenge,
    purpose: "CHALLENGE",
  }),
  example("iot.IotService.SimulatedSign", "sign-reading", "Signs a reading as the device.", {
    deviceId,
    data: telemetry,
    purpose: "READING",
  }),
  example("iot.IotService.Authenticate", "authenticate", "Authenticates the device.", {
    deviceId,
    challenge,
    signature: answered("sign-challenge", "signature", someBytes),
  }),
  example("iot.IotService.SendTelemetry", "send-telemetry", "Sends a reading.", {
    deviceId,
    telemetry,
    signature: answered("sign-reading", "signature", someBytes),
  }),
  example("kms.KmsService.CreateKey", "create-vendor-key", "Creates a key that signs firmware.", {
    alias: "vendor",
    algorithm: "ML-DSA-87",
  }),
  example("kms.KmsService.Sign", "sign-firmware", "Signs the SHA-256 of firmware.", {
    keyId: answered("create-vendor-key", "result.keyId", someId("key")),
    data: imageHash.toString("base64"),
  }),
  example("iot.IotService.UpdateFirmware", "update-firmware", "Installs version 1.", {
    firmware,
    signature: answered("sign-firmware", "result.signature", someBytes),
    vendorPublicKey: answered("create-vendor-key", "result.publicKey", someBytes),
    deviceId,
    version: 1,
  }),
  example(
    "iot.IotService.ReportFirmware",
    "report-firmware",
    "Reports, as the device, what it runs.",
    { targetPath: "sensor/firmware.bin", version: "1", firmwareHash: imageHash.toString("hex") },
    answered("authenticate", "token", "…"),
  ),
  example("iot.IotService.ListDevices", "list-devices", "Lists devices.", { pageSize: 10 }),
  example("iot.IotService.RegisterDevice", "register-lost-device", "Registers another device.", {
    deviceName: "lost thermometer",
  }),
  example("iot.IotService.RemoveDevice", "remove-device", "Removes a device that was lost.", {
    deviceId: answered("register-lost-device", "deviceId", someId("device")),
  }),
  example("iot.IotService.GetHealth", "get-iot-health", "Checks the health of the service."),
];
