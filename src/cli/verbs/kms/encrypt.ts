/** `qsp kms encrypt`, `decrypt` and `re-encrypt`. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { wipe } from "../../../crypto/bytes.ts";
import { encryptData } from "../../../crypto/key-encryption.ts";
import { requireResult, unaryVerb } from "../../call-verbs.ts";
import { inputFile, outputFile } from "../../command-line/options.ts";
import { exitCodes, usageError } from "../../exit-codes.ts";
import { readSecret, readWhole } from "../../files/read.ts";
import { readPublicKey, withProvider } from "../../keys/read-keys.ts";
import { bytes } from "../../output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";

const { method } = KmsService;

/** Maximum size in bytes of what the server encrypts. */
const maxPlaintextBytes = 65_536;

const associatedData = {
  value: "TEXT",
  meaning: "Data that the ciphertext is bound to, such as the name of its record; decryption needs the same",
} as const;

function readAssociatedData({ options }: VerbInput): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(options.text("associated-data") ?? "");
}

function requireOut({ options, output }: VerbInput, meaning: string): void {
  if (options.flag("out") || output.isJson) return;
  throw usageError(
    `--out is missing: it names the file for ${meaning}, - for standard output; --json prints it instead`,
  );
}

export const kmsEncryptVerbs: readonly Verb[] = [
  declareVerb({
    line: "kms encrypt KEY FILE",
    operandFiles: { FILE: "reads" },
    options: {
      "associated-data": associatedData,
      "public-key": inputFile("Public key of KEY; encrypts on this machine, without the server"),
      out: outputFile("File for the ciphertext"),
    },
    meaning:
      "Encrypts a file of up to 64 KiB, - for standard input, with a key whose usage is ENCRYPT (HPKE, RFC 9180).\n" +
      "With --public-key, KEY must be an ID, because the ciphertext contains it.",
    example: 'qsp kms encrypt "$ENCRYPTION_KEY" password.txt --out password.enc',
    async run(input) {
      const { operands, options, files, output } = input;
      const [keyId = "", path = ""] = operands;
      requireOut(input, "the ciphertext");
      const plaintext = await readSecret(path, maxPlaintextBytes);
      try {
        const request = { keyId, plaintext, associatedData: readAssociatedData(input) };
        const publicKey = options.text("public-key");
        const result =
          publicKey === undefined
            ? requireResult((await input.server.ask(method.encrypt, request)).result)
            : await encryptHere(publicKey, request);
        const { ciphertext, algorithm } = result;
        const file = files.write("out", ciphertext);
        const base64 = Buffer.from(ciphertext).toString("base64");
        output.report(
          file === undefined
            ? { ciphertext: base64, keyId: result.keyId, algorithm }
            : { keyId: result.keyId, algorithm, file },
          `${file}: ${bytes(ciphertext.length)}, encrypted under ${result.keyId} (${algorithm})`,
        );
        return exitCodes.done;
      } finally {
        wipe(plaintext);
      }
    },
  }),
  unaryVerb(method.decrypt, {
    line: "kms decrypt FILE",
    operandFiles: { FILE: "reads" },
    options: {
      key: {
        value: "KEY",
        meaning: "Key that the ciphertext must belong to; default: the one that it names",
      },
      "associated-data": associatedData,
      out: {
        value: "FILE",
        meaning:
          "File for the plaintext (mode 0600), - for a pipe; optional with --json, which prints it in base64",
        file: "creates",
        isSecret: true,
      },
    },
    meaning: "Decrypts a ciphertext from qsp kms encrypt, - for standard input. The file names its key.",
    example: "qsp kms decrypt password.enc --out decrypted.txt",
    async ask(input) {
      requireOut(input, "the plaintext");
      const { operands, options } = input;
      const ciphertext = await readWhole(operands[0] ?? "");
      return { ciphertext, keyId: options.text("key") ?? "", associatedData: readAssociatedData(input) };
    },
    writes: { out: ({ result }) => requireResult(result).plaintext },
    finish({ result }, { options }) {
      if (result !== undefined && options.flag("out")) result.plaintext = new Uint8Array();
    },
    say: ({ result }, _, { out }) => `${out}: decrypted with ${requireResult(result).keyId}`,
  }),
  unaryVerb(method.reEncrypt, {
    line: "kms re-encrypt FILE KEY",
    operandFiles: { FILE: "reads" },
    options: { "associated-data": associatedData, out: outputFile("File for the new ciphertext") },
    meaning:
      "Decrypts a ciphertext and encrypts it under a different key, or a newer version of the same name. The plaintext\n" +
      "does not leave the server.",
    example: 'qsp kms re-encrypt password.enc "$ENCRYPTION_KEY" --out password.new.enc',
    async ask(input) {
      requireOut(input, "the new ciphertext");
      const [path = "", keyId = ""] = input.operands;
      return { ciphertext: await readWhole(path), keyId, associatedData: readAssociatedData(input) };
    },
    writes: { out: ({ result }) => requireResult(result).ciphertext },
    say({ result }, _, { out }) {
      const { keyId, sourceKeyId } = requireResult(result);
      return `${out}: re-encrypted from ${sourceKeyId} to ${keyId}`;
    },
  }),
];

interface Request {
  readonly keyId: string;
  readonly plaintext: Uint8Array;
  readonly associatedData: Uint8Array;
}

function encryptHere(path: string, { keyId, plaintext, associatedData: bound }: Request) {
  if (!keyId.startsWith("key-"))
    throw usageError(`"${keyId}" is not a key ID; with --public-key use the ID, which qsp kms get prints`);
  return withProvider(async (provider) => {
    const publicKey = readPublicKey(provider, path);
    const ciphertext = await encryptData(
      provider,
      { keyId, publicKey },
      { data: plaintext, associatedData: bound },
    );
    return { ciphertext, keyId, algorithm: publicKey.algorithm };
  });
}
