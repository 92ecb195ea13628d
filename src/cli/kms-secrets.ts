/** `qsp kms encapsulate` and `decapsulate`: write shared secrets to files. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { readWhole } from "./files.ts";
import { bytes } from "./output.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = KmsService;

const secret = {
  value: "FILE",
  meaning: "File for the 32 bytes of the shared secret (mode 0600); optional with --json, which prints them",
  file: "creates",
  isSecret: true,
} as const;

export const kmsSecretVerbs: readonly Verb[] = [
  {
    name: "kms encapsulate",
    operands: ["KEY"],
    options: {
      secret,
      ciphertext: { value: "FILE", meaning: "File for the ciphertext", file: "writes" },
    },
    meaning:
      "Generates a shared secret for an ML-KEM or X-Wing key, and the ciphertext from which the key recovers it.",
    example: 'qsp kms encapsulate "$KEM_KEY" --ciphertext shared.ct --secret shared.secret',
    async run(input) {
      const { operands, files, options, output, server } = input;
      requireSecretFile(input);
      if (!output.isJson) options.need("ciphertext");
      const answer = await server.ask(method.encapsulate, { keyId: operands[0] ?? "" });
      const { ciphertext, sharedSecret } = answer.result ?? {};
      if (ciphertext === undefined || sharedSecret === undefined) throw new Error("the answer has no result");
      const secretFile = files.write("secret", sharedSecret);
      const ciphertextFile = files.write("ciphertext", ciphertext);
      if (secretFile !== undefined && answer.result !== undefined)
        answer.result.sharedSecret = new Uint8Array();
      output.answer(
        method.encapsulate.output,
        answer,
        () =>
          `${ciphertextFile}: ${bytes(ciphertext.length)} of ciphertext\n${secretFile}: the shared secret`,
      );
      return exitCodes.done;
    },
  },
  {
    name: "kms decapsulate",
    operands: ["KEY", "CIPHERTEXT-FILE"],
    operandFiles: { "CIPHERTEXT-FILE": "reads" },
    options: { secret },
    meaning:
      "Recovers the shared secret of a ciphertext. A changed ciphertext gives another secret and no error (FIPS 203,\n" +
      "section 7.3).",
    example: 'qsp kms decapsulate "$KEM_KEY" message.ct --secret message.secret',
    async run(input) {
      const { operands, files, output, server } = input;
      const [keyId = "", path = ""] = operands;
      requireSecretFile(input);
      const ciphertext = await readWhole(path);
      const answer = await server.ask(method.decapsulate, { keyId, ciphertext });
      if (answer.result === undefined) throw new Error("the answer has no result");
      const secretFile = files.write("secret", answer.result.sharedSecret);
      if (secretFile !== undefined) answer.result.sharedSecret = new Uint8Array();
      output.answer(method.decapsulate.output, answer, () => `${secretFile}: the shared secret`);
      return exitCodes.done;
    },
  },
];

/** @throws CliError if the secret would appear on a screen */
function requireSecretFile({ options, output }: VerbInput): void {
  if (options.flag("secret") || output.isJson) return;
  throw usageError("--secret is missing: it names the file for the shared secret; --json prints it instead");
}
