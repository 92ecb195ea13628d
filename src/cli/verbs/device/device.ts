/** `qsp device`: acts as a device with its own key. */

import { existsSync } from "node:fs";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { answerVerb, listVerb, unaryVerb } from "../../call-verbs.ts";
import { inputFile } from "../../command-line/options.ts";
import { theAnswer, toUpload } from "../../connection/api-client.ts";
import { distrustError, usageError } from "../../exit-codes.ts";
import { readState, withNewState } from "../../files/state.ts";
import { readPublicKeyPem, withProvider } from "../../keys/read-keys.ts";
import { facts } from "../../output/output.ts";
import { readWithProgress } from "../../output/progress.ts";
import { readSignature } from "../../signing/local.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";
import { deviceReadingVerbs } from "./readings.ts";
import { defaultDeviceFile, deviceKind, deviceOption, withDevice } from "./state.ts";

const { method } = IotService;
const deviceAlgorithm = "ML-DSA-44";

export const deviceVerbs: readonly Verb[] = [
  answerVerb(method.registerDevice.output, register, {
    line: "device register [NAME]",
    options: {
      device: { ...deviceOption.device, file: "creates" },
      type: { value: "TEXT", meaning: "Type of the device" },
      "vendor-key": inputFile("Public key of the firmware vendor to pin: ML-DSA-87, PEM or a JWK"),
    },
    meaning:
      "Creates an ML-DSA-44 key in a file and registers its public key. The device signs challenges and readings under\n" +
      "a separate context for each use.",
    example: "qsp device register thermometer --device thermometer.json",
    say: ({ deviceId: device }, { operands: [name], files }) => ({
      ...{ device, name, algorithm: deviceAlgorithm },
      key: files.need("device"),
    }),
  }),
  declareVerb({
    line: "device authenticate",
    options: deviceOption,
    meaning: "Authenticates the device: signs a challenge, and stores the token with the key.",
    run: authenticate,
  }),
  listVerb(method.listDevices, {
    line: "device list",
    meaning: "Lists the server's devices.",
    items: ({ devices }) => devices,
    none: "There are no devices.",
    columns: {
      DEVICE: "deviceId",
      NAME: "deviceName",
      TYPE: "deviceType",
      STATUS: "registrationStatus",
      "LAST SEEN": "lastSeenAt",
      FIRMWARE: ({ firmwareVersion, reportedFirmware }) =>
        firmwareVersion?.toString() ?? reportedFirmware?.version ?? "",
    },
  }),
  unaryVerb(method.removeDevice, {
    line: "device remove DEVICE",
    meaning: "Removes a lost or retired device. The server then refuses its challenges, tokens and readings.",
    example: 'qsp device remove "$DEVICE"',
    ask: ({ operands: [deviceId = ""] }) => ({ deviceId }),
    say: ({ deviceId, registrationStatus }) => `${deviceId} is ${registrationStatus}.`,
  }),
  ...deviceReadingVerbs,
  declareVerb({
    line: "device firmware IMAGE",
    operandFiles: { IMAGE: "reads" },
    options: {
      // A server can also check firmware without a device.
      device: { ...deviceOption.device, file: "reads" },
      signature: inputFile("File with the vendor's signature, from qsp sign --sha256"),
      "vendor-key": inputFile("Vendor's public key, ML-DSA-87: PEM or a JWK; default: the pinned one"),
      version: {
        value: "NUMBER",
        meaning: "Version of the image; the server rejects one below the installed version",
      },
    },
    meaning:
      "Has the server check firmware of any size, and store the result for the device, if any. The vendor signs with\n" +
      "qsp sign IMAGE --sha256 --key-file vendor.key.",
    example: "qsp device firmware image.bin --signature image.bin.sig --vendor-key vendor.pub --version 2",
    run: update,
  }),
];

async function register({ operands: [deviceName = ""], files, options, server }: VerbInput) {
  const path = files.need("device");
  const about = {
    deviceName,
    deviceType: options.text("type") ?? "",
    vendorPublicKeyPem: await readVendorKey(options.text("vendor-key")),
  };
  return withProvider(async (provider) => {
    const { publicKey, secretKey } = await provider.generateKeyPair(deviceAlgorithm);
    return withNewState(path, async (keep) => {
      const request = { ...about, publicKeyPem: publicKey.toPem(), signingContexts: true };
      const answer = await server.ask(method.registerDevice, request);
      const [url, secretKeyPem] = [server.url, secretKey.toPem()];
      const { deviceId } = answer;
      keep({ url, deviceId, secretKeyPem, nextSequence: 1, signingContexts: true });
      return answer;
    });
  });
}

function authenticate(input: VerbInput): Promise<number> {
  const { output, server } = input;
  return withDevice(input, async (device) => {
    const { deviceId } = device.state;
    // Challenge calls need no token.
    const anonymous = server.withToken(undefined);
    const { challenge } = await anonymous.ask(method.issueChallenge, { deviceId });
    if (challenge.length !== 32)
      throw distrustError(`${server.url} sent a challenge of ${challenge.length} bytes; expected 32`);
    const signature = await device.signChallenge(challenge);
    const answer = await anonymous.ask(method.authenticate, { deviceId, challenge, signature });
    const { authenticated, reason, token, expiresAt } = answer;
    const tokenExpiresAt = expiresAt && timestampDate(expiresAt).toISOString();
    if (authenticated) device.keep({ token, tokenExpiresAt });
    // The token is stored in the file; keep it off screens and out of logs.
    delete answer.token;
    const text = (): string =>
      authenticated
        ? `${deviceId} is authenticated until ${tokenExpiresAt}; its token is in ${device.path}.`
        : `${deviceId} is NOT authenticated: ${reason}.`;
    return output.answer(method.authenticate.output, answer, text, authenticated);
  });
}

async function update({ operands: [image = ""], options, output, server }: VerbInput): Promise<number> {
  const signature = await readSignature(options.need("signature"), ["ML-DSA-87"]);
  const version = options.whole("version", 0, 4_294_967_295);
  const named = options.text("device");
  const path = named ?? defaultDeviceFile;
  const isDevice = named !== undefined || existsSync(path);
  const deviceId = isDevice ? readState(path, server.url, deviceKind).deviceId : "";
  const vendorPublicKeyPem = await readVendorKey(options.text("vendor-key"));
  if (!isDevice && vendorPublicKeyPem === "")
    throw usageError("--vendor-key is missing, and no device has a pinned vendor");
  const header = { signature, deviceId, vendorPublicKeyPem, ...(version !== undefined && { version }) };
  const requests = toUpload(header, readWithProgress(image));
  const answer = await theAnswer(server.stream(method.updateFirmwareStream, requests));
  const { result, reason, firmwareHash } = answer;
  const text = () => facts({ result, reason, "SHA-256": firmwareHash, device: deviceId });
  return output.answer(method.updateFirmwareStream.output, answer, text, result === "FIRMWARE_ACCEPTED");
}

/** @returns PEM; "" without a file */
async function readVendorKey(file: string | undefined): Promise<string> {
  return file === undefined ? "" : readPublicKeyPem(file, "ML-DSA-87");
}
