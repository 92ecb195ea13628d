/** `qsp kms cbom`. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { outputFile } from "../../command-line/options.ts";
import { oneOf } from "../../connection/api-client.ts";
import { CliError, exitCodes } from "../../exit-codes.ts";
import { bytes } from "../../output/output.ts";
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
      const read = { bytes: 0 };
      const parts = server.stream(method.getCbom, oneOf({}));
      const file = await files.writeChunks("out", dataOf(parts, read));
      if (!files.areOnStandardOutput)
        output.report({ file, bytes: read.bytes }, `${file}: ${bytes(read.bytes)}`);
      return exitCodes.done;
    },
  }),
];

/** @param read counts the bytes */
async function* dataOf(
  parts: AsyncIterable<{ readonly cbom?: { readonly data: Uint8Array } | undefined }>,
  read: { bytes: number },
) {
  for await (const { cbom } of parts) {
    read.bytes += cbom?.data.length ?? 0;
    if (read.bytes > maxBytes)
      throw new CliError(exitCodes.unreachable, `the server sent more than ${maxBytes} bytes`);
    if (cbom !== undefined) yield cbom.data;
  }
}
