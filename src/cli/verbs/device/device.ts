/** `qsp device`: acts as a device with its own key. */

import { timestampDate } from "@bufbuild/protobuf/wkt";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { listVerb } from "../../call-verbs.ts";
import { inputFile } from "../../command-line/options.ts";
import { distrustError, exitCodes } from "../../exit-codes.ts";
import { readPublicKeyPem, withProvider } from "../../keys/read-keys.ts";
import { facts } from "../../output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";
import { deviceOption, reserveDevice, withDevice } from "./state.ts";

const { method } = IotService;
const deviceAlgorithm = "ML-DSA-44";

export const deviceVerbs: readonly Verb[] = [
  declareVerb({
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
    run: register,
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
];

async function register({
  operands: [deviceName = ""],
  files,
  options,
  output,
  server,
}: VerbInput): Promise<number> {
  const path = files.need("device");
  const vendorFile = options.text("vendor-key");
  const about = {
    deviceName,
    deviceType: options.text("type") ?? "",
    vendorPublicKeyPem: vendorFile === undefined ? "" : await readPublicKeyPem(vendorFile, "ML-DSA-87"),
  };
  return withProvider(async (provider) => {
    const { publicKey, secretKey } = await provider.generateKeyPair(deviceAlgorithm);
    const file = reserveDevice(path);
    try {
      const request = { ...about, publicKeyPem: publicKey.toPem(), signingContexts: true };
      const answer = await server.ask(method.registerDevice, request);
      const { deviceId } = answer;
      const [url, secretKeyPem] = [server.url, secretKey.toPem()];
      file.keep({ url, deviceId, secretKeyPem, nextSequence: 1, signingContexts: true });
      output.answer(method.registerDevice.output, answer, () =>
        facts({ device: deviceId, name: deviceName, algorithm: deviceAlgorithm, key: path }),
      );
      return exitCodes.done;
    } catch (error) {
      file.drop();
      throw error;
    }
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
    output.answer(method.authenticate.output, answer, () =>
      authenticated
        ? `${deviceId} is authenticated until ${tokenExpiresAt}; its token is in ${device.path}.`
        : `${deviceId} is NOT authenticated: ${reason}.`,
    );
    return authenticated ? exitCodes.done : exitCodes.no;
  });
}
