/** `qsp kms encapsulate` and `decapsulate`: write shared secrets to files. */

import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { requireResult, unaryVerb } from "../../call-verbs.ts";
import { outputFile } from "../../command-line/options.ts";
import { usageError } from "../../exit-codes.ts";
import { readWhole } from "../../files/read.ts";
import { bytes } from "../../output/output.ts";
import type { Verb, VerbInput } from "../../verb.ts";

const { method } = KmsService;

const secret = {
  value: "FILE",
  meaning: "File for the 32 bytes of the shared secret (mode 0600); optional with --json, which prints them",
  file: "creates",
  isSecret: true,
} as const;

export const kmsSecretVerbs: readonly Verb[] = [
  unaryVerb(method.encapsulate, {
    line: "kms encapsulate KEY",
    options: { secret, ciphertext: outputFile("File for the ciphertext") },
    meaning:
      "Generates a shared secret for an ML-KEM or X-Wing key, and the ciphertext from which the key recovers it.",
    example: 'qsp kms encapsulate "$KEM_KEY" --ciphertext shared.ct --secret shared.secret',
    ask(input) {
      requireSecretFile(input);
      if (!input.output.isJson) input.options.need("ciphertext");
      return { keyId: input.operands[0] ?? "" };
    },
    writes: {
      secret: ({ result }) => requireResult(result).sharedSecret,
      ciphertext: ({ result }) => requireResult(result).ciphertext,
    },
    finish: hideWritten,
    say: ({ result }, _, files) =>
      `${files.ciphertext}: ${bytes(requireResult(result).ciphertext.length)} of ciphertext\n${files.secret}: the shared secret`,
  }),
  unaryVerb(method.decapsulate, {
    line: "kms decapsulate KEY CIPHERTEXT-FILE",
    operandFiles: { "CIPHERTEXT-FILE": "reads" },
    options: { secret },
    meaning:
      "Recovers the shared secret of a ciphertext. A changed ciphertext gives another secret and no error (FIPS 203,\n" +
      "section 7.3).",
    example: 'qsp kms decapsulate "$KEM_KEY" message.ct --secret message.secret',
    async ask(input) {
      const [keyId = "", path = ""] = input.operands;
      requireSecretFile(input);
      return { keyId, ciphertext: await readWhole(path) };
    },
    writes: { secret: ({ result }) => requireResult(result).sharedSecret },
    finish: hideWritten,
    say: (_, __, files) => `${files.secret}: the shared secret`,
  }),
];

/** Removes a secret that was written to a file from the answer. */
function hideWritten(
  { result }: { readonly result?: { sharedSecret: Uint8Array } | undefined },
  { options }: VerbInput,
): void {
  if (result !== undefined && options.flag("secret")) result.sharedSecret = new Uint8Array();
}

/** @throws CliError if the secret would appear on a screen */
function requireSecretFile({ options, output }: VerbInput): void {
  if (options.flag("secret") || output.isJson) return;
  throw usageError("--secret is missing: it names the file for the shared secret; --json prints it instead");
}
