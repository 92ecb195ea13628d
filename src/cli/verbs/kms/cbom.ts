/** `qsp kms cbom`. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { outputFile } from "../../command-line/options.ts";
import { oneOf } from "../../connection/api-client.ts";
import { CliError, exitCodes } from "../../exit-codes.ts";
import { declareVerb, type Verb } from "../../verb.ts";

const { method } = KmsService;

/** Bounds what any server may send: more than a million keys have. */
const maxBytes = 1024 ** 3;

export const kmsCbomVerbs: readonly Verb[] = [
  declareVerb({
    line: "kms cbom",
    options: {
      out: { ...outputFile("File for the document; default: standard output"), defaultPath: () => "-" },
    },
    meaning:
      "Describes your keys, their algorithms and the server's certificates as a cryptography bill of materials (CBOM):\n" +
      "CycloneDX 1.7, always in JSON.",
    example: "qsp kms cbom --out keys.cdx.json",
    async run({ files, output, server }) {
      const file = await files.writeChunks("out", dataOf(server.stream(method.getCbom, oneOf({}))));
      if (!files.areOnStandardOutput) output.report({ file }, `${file}: written`);
      return exitCodes.done;
    },
  }),
];

async function* dataOf(parts: AsyncIterable<{ readonly cbom?: { readonly data: Uint8Array } | undefined }>) {
  let left = maxBytes;
  for await (const { cbom } of parts) {
    left -= cbom?.data.length ?? 0;
    if (left < 0) throw new CliError(exitCodes.unreachable, `the server sent more than ${maxBytes} bytes`);
    if (cbom !== undefined) yield cbom.data;
  }
}
