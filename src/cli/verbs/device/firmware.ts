/** `qsp device firmware`: sends a vendor-signed image of any size. */

import { existsSync } from "node:fs";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { inputFile } from "../../command-line/options.ts";
import { theAnswer, toUpload } from "../../connection/api-client.ts";
import { exitCodes, usageError } from "../../exit-codes.ts";
import { readPublicKeyPem } from "../../keys/read-keys.ts";
import { readWithProgress } from "../../output/byte-progress.ts";
import { facts } from "../../output/output.ts";
import { readSignature } from "../../signing/local.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";
import { defaultDeviceFile, deviceOption, readDevice } from "./state.ts";

const { method } = IotService;

export const deviceFirmwareVerbs: readonly Verb[] = [
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

async function update({ operands: [image = ""], options, output, server }: VerbInput): Promise<number> {
  const signature = await readSignature(options.need("signature"), ["ML-DSA-87"]);
  const vendorFile = options.text("vendor-key");
  const version = options.whole("version", 0, 4_294_967_295);
  const named = options.text("device");
  const path = named ?? defaultDeviceFile;
  const deviceId = named !== undefined || existsSync(path) ? readDevice(path, server.url).deviceId : "";
  if (deviceId === "" && vendorFile === undefined)
    throw usageError("--vendor-key is missing, and no device has a pinned vendor");
  const header = {
    signature,
    deviceId,
    vendorPublicKeyPem: vendorFile === undefined ? "" : await readPublicKeyPem(vendorFile, "ML-DSA-87"),
    ...(version !== undefined && { version }),
  };
  const requests = toUpload(header, readWithProgress(image));
  const answer = await theAnswer(server.stream(method.updateFirmwareStream, requests));
  const { result, reason, firmwareHash } = answer;
  output.answer(method.updateFirmwareStream.output, answer, () =>
    facts({ result, reason, "SHA-256": firmwareHash, device: deviceId }),
  );
  return result === "FIRMWARE_ACCEPTED" ? exitCodes.done : exitCodes.no;
}
