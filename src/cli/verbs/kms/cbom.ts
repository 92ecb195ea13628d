/** `qsp kms cbom`. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { outputFile } from "../../command-line/options.ts";
import { oneOf } from "../../connection/api-client.ts";
import { exitCodes } from "../../exit-codes.ts";
import { decodeText, gather } from "../../files/read.ts";
import { bytes } from "../../output/output.ts";
import { declareVerb, type Verb } from "../../verb.ts";

const { method } = KmsService;

/** Bounds what any server may send: more than a million keys have. */
const maxBytes = 1024 ** 3;

export const kmsCbomVerbs: readonly Verb[] = [
  declareVerb({
    line: "kms cbom",
    options: { out: outputFile("File for the document; default: standard output") },
    meaning:
      "Describes your keys, their algorithms and the server's certificates as a cryptography bill of materials (CBOM):\n" +
      "CycloneDX 1.7, always in JSON.",
    example: "qsp kms cbom --out keys.cdx.json",
    async run({ files, output, server }) {
      const parts = server.stream(method.getCbom, oneOf({}));
      const document = await gather(dataOf(parts), maxBytes, `the server sent more than ${maxBytes} bytes`);
      const file = files.write("out", document);
      if (file === undefined) output.print(decodeText(document, "the document").trimEnd());
      else output.report({ file, bytes: document.length }, `${file}: ${bytes(document.length)}`);
      return exitCodes.done;
    },
  }),
];

async function* dataOf(parts: AsyncIterable<{ readonly cbom?: { readonly data: Uint8Array } | undefined }>) {
  for await (const { cbom } of parts) if (cbom !== undefined) yield cbom.data;
}
