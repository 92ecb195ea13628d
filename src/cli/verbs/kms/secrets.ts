/** `qsp kms encapsulate` and `decapsulate`, `encrypt`, `decrypt` and `re-encrypt`: secrets go only to files. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { wipe } from "../../../crypto/bytes.ts";
import { encryptData } from "../../../crypto/key-encryption.ts";
import { requireResult, unaryVerb } from "../../call-verbs.ts";
import { inputFile, outputFile, secretFile } from "../../command-line/options.ts";
import { usageError } from "../../exit-codes.ts";
import { readWhole } from "../../files/read.ts";
import { readPublicKey, withProvider } from "../../keys/read-keys.ts";
import { bytes, keyBehind } from "../../output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";

const { method } = KmsService;

/** Maximum size in bytes of what the server encrypts. */
const maxPlaintextBytes = 65_536;

const secret = secretFile(
  "File for the 32 bytes of the shared secret (mode 0600); optional with --json, which prints them",
);

const associatedData = {
  value: "TEXT",
  meaning: "Data that the ciphertext is bound to, such as the name of its record; decryption needs the same",
} as const;

export const kmsSecretVerbs: readonly Verb[] = [
  unaryVerb(method.encapsulate, {
    line: "kms encapsulate KEY",
    options: { secret, ciphertext: outputFile("File for the ciphertext") },
    meaning:
      "Generates a shared secret for an ML-KEM or X-Wing key, and the ciphertext from which the key recovers it.",
    example: 'qsp kms encapsulate "$KEM_KEY" --ciphertext shared.ct --secret shared.secret',
    ask(input) {
      requireFile(input, "secret", "the shared secret");
      if (!input.output.isJson) input.options.need("ciphertext");
      return { keyId: input.operands[0] ?? "" };
    },
    writes: {
      secret: ({ result }) => requireResult(result).sharedSecret,
      ciphertext: ({ result }) => requireResult(result).ciphertext,
    },
    finish: hideShared,
    say({ result }, { operands }, files) {
      const { ciphertext, keyId } = requireResult(result);
      const size = `${bytes(ciphertext.length)} of ciphertext${keyBehind(operands[0], keyId)}`;
      return `${files.ciphertext}: ${size}\n${files.secret}: the shared secret`;
    },
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
      requireFile(input, "secret", "the shared secret");
      return { keyId, ciphertext: await readWhole(path) };
    },
    writes: { secret: ({ result }) => requireResult(result).sharedSecret },
    finish: hideShared,
    say: (_, __, files) => `${files.secret}: the shared secret`,
  }),
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
      await encrypt(input);
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
      out: secretFile(
        "File for the plaintext (mode 0600), - for a pipe; optional with --json, which prints it in base64",
      ),
    },
    meaning: "Decrypts a ciphertext from qsp kms encrypt, - for standard input. The file names its key.",
    example: "qsp kms decrypt password.enc --out decrypted.txt",
    async ask(input) {
      requireFile(input, "out", "the plaintext, - for standard output");
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
      requireFile(input, "out", "the new ciphertext, - for standard output");
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

/** @throws CliError if the content would appear on a screen */
function requireFile({ options, output }: VerbInput, option: string, content: string): void {
  if (options.flag(option) || output.isJson) return;
  throw usageError(`--${option} is missing: it names the file for ${content}; --json prints it instead`);
}

function readAssociatedData({ options }: VerbInput): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(options.text("associated-data") ?? "");
}

/** Removes a secret that was written to a file from the answer. */
function hideShared(
  { result }: { readonly result?: { sharedSecret: Uint8Array } | undefined },
  { options }: VerbInput,
): void {
  if (result !== undefined && options.flag("secret")) result.sharedSecret = new Uint8Array();
}

async function encrypt(input: VerbInput): Promise<void> {
  const { operands, options, files, output, server } = input;
  const [keyId = "", path = ""] = operands;
  requireFile(input, "out", "the ciphertext, - for standard output");
  const plaintext = await readWhole(path, maxPlaintextBytes);
  try {
    const request = { keyId, plaintext, associatedData: readAssociatedData(input) };
    const publicKey = options.text("public-key");
    const { ciphertext, ...about } =
      publicKey === undefined
        ? requireResult((await server.ask(method.encrypt, request)).result)
        : await encryptHere(publicKey, request);
    const { algorithm } = about;
    const file = files.write("out", ciphertext);
    output.report(
      {
        ...(file === undefined && { ciphertext: Buffer.from(ciphertext).toString("base64") }),
        ...{ keyId: about.keyId, algorithm },
        ...(file !== undefined && { file }),
      },
      `${file}: ${bytes(ciphertext.length)}, encrypted under ${about.keyId} (${algorithm})`,
    );
  } finally {
    wipe(plaintext);
  }
}

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
