/** `qsp encrypt`. */
import { exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { chunkBytes, readText } from "../../src/cli/files/read.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { counted } from "../../src/cli/output/output.ts";
import { readWithProgress } from "../../src/cli/output/progress.ts";
import { declareVerb, type Verb, type VerbInput } from "../../src/cli/verb.ts";
import { encryptFile } from "./age-file.ts";
import { decodeRecipient } from "./bech32.ts";
import { maxStanzas } from "./header.ts";
import { listEntries } from "./identities.ts";
import { findRecipientKey } from "./kms-keys.ts";

export const encryptVerbs: readonly Verb[] = [
  declareVerb({
    line: "encrypt FILE",
    operandFiles: { FILE: "reads" },
    options: {
      key: { value: "KEY", meaning: "Server-held X-Wing key with usage KEM; repeatable", isMany: true },
      recipient: { value: "RECIPIENT", meaning: "Recipient age1pq…; repeatable", isMany: true },
      "recipients-file": {
        value: "FILE",
        meaning: "File with recipients, one per line; repeatable",
        isMany: true,
        file: "reads",
      },
      armor: { meaning: "Writes text (PEM) instead of bytes" },
      out: {
        value: "FILE",
        meaning: "File for the ciphertext; default: FILE.age, or standard output for standard input",
        file: "writes",
        defaultPath: ({ operands: [path] }) => (path === "-" ? "-" : `${path}.age`),
      },
    },
    meaning:
      "Encrypts a file of any size, - for standard input, in the age format (C2SP age), which age 1.3 and newer decrypt.\n" +
      "Each recipient can decrypt it. The file stays on this machine; with --key, the server sends only the public key.",
    example: "qsp encrypt report.pdf --key name/archive",
    async run(input) {
      const { operands, options, files, output } = input;
      const [path = ""] = operands;
      const isArmored = options.flag("armor");
      if (files.areOnStandardOutput && process.stdout.isTTY && !isArmored)
        throw usageError("the ciphertext is binary; use --armor, --out FILE, or redirect standard output");
      const publicKeys = await readRecipients(input);
      const file = await withProvider((provider) => {
        const recipients = publicKeys.map((raw) => provider.importPublicKey("X-Wing", { raw }));
        return files.writeChunks(
          "out",
          encryptFile(provider, readWithProgress(path, Buffer.alloc(chunkBytes)), { recipients, isArmored }),
        );
      });
      if (files.areOnStandardOutput) return exitCodes.done;
      const count = publicKeys.length;
      output.report({ file, recipients: count }, `${file}: encrypted to ${counted(count, "recipient")}`);
      return exitCodes.done;
    },
  }),
];

/** Reads the recipients' X-Wing public keys. Server-held keys come first: see `maxCalls`. */
async function readRecipients({ options, server }: VerbInput): Promise<readonly Uint8Array[]> {
  const listed = options.all("recipients-file").flatMap((path) => {
    const entries = listEntries(readText(path));
    if (entries.length === 0) throw usageError(`${path} contains no recipient`);
    return entries.map((text, i) => parseRecipient(text, `recipient ${i + 1} in ${path}`));
  });
  const given = options.all("recipient").map((text) => parseRecipient(text, "--recipient"));
  const handles = options.all("key");
  const count = handles.length + given.length + listed.length;
  if (count === 0) throw usageError("a file needs a recipient; use --key, --recipient or --recipients-file");
  if (count > maxStanzas) throw usageError(`a file can have ${maxStanzas} recipients, not ${count}`);
  const held: Uint8Array[] = [];
  for (const handle of handles) held.push((await findRecipientKey(server, handle)).publicKey);
  return [...held, ...given, ...listed];
}

function parseRecipient(text: string, origin: string): Uint8Array {
  const publicKey = decodeRecipient(text);
  if (publicKey !== undefined) return publicKey;
  // Whoever pastes a secret into the wrong option should not find it in a log.
  if (/^AGE-/i.test(text)) throw usageError(`${origin} is an identity; name a recipient age1pq…`);
  if (text.startsWith("age1pq1"))
    throw usageError(`${origin} is a damaged recipient: its checksum or length is wrong`);
  const hint = text.startsWith("age1") ? ", which is not post-quantum or needs a plugin" : "";
  const quoted = text.length > 20 ? `${text.slice(0, 20)}…` : text;
  throw usageError(`${origin} is "${quoted}"${hint}; name a recipient age1pq…`);
}
