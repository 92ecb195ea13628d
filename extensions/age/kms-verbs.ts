/** `qsp kms age-recipient` and `age-identity`, and age identities for `qsp kms import`. */
import { outputFile } from "../../src/cli/command-line/options.ts";
import { exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { type KeyFile, readKeyFile } from "../../src/cli/keys/importable-key.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";
import { createImportVerb } from "../../src/cli/verbs/kms/new-key.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { encodePluginIdentity, encodeRecipient } from "./bech32.ts";
import { parseIdentities } from "./identities.ts";
import { findRecipientKey } from "./kms-keys.ts";

export const kmsAgeVerbs: readonly Verb[] = [
  declareVerb({
    line: "kms age-recipient KEY",
    meaning:
      "Prints the recipient age1pq… of an X-Wing key with usage KEM, for age, rage, SOPS and qsp encrypt. A rotated name\n" +
      "has a new recipient.",
    example: "qsp kms age-recipient name/archive",
    async run({ operands: [handle = ""], output, server }) {
      const { keyId, publicKey } = await findRecipientKey(server, handle);
      const recipient = encodeRecipient(publicKey);
      output.report({ recipient, keyId }, recipient);
      return exitCodes.done;
    },
  }),
  declareVerb({
    line: "kms age-identity [KEY]",
    options: { out: outputFile("File for the identity; default: standard output") },
    meaning:
      "Prints an identity with which age, rage and SOPS decrypt through age-plugin-qsp. It contains the key's ID or name,\n" +
      "and no secret. Without KEY, the plugin tries your X-Wing keys with usage KEM, at most 8 attempts for each file.",
    example: "qsp kms age-identity name/archive --out archive.identity",
    async run({ operands: [handle = ""], files, output, server }) {
      const recipient =
        handle === ""
          ? undefined
          : encodeRecipient((await findRecipientKey(server, handle, "decrypts")).publicKey);
      const identity = encodePluginIdentity(handle);
      const text = [
        `# ${handle || "all X-Wing keys with usage KEM"} at the server that QSP_URL names`,
        ...(recipient === undefined ? [] : [`# recipient: ${recipient}`]),
        identity,
      ].join("\n");
      const file = files.write("out", `${text}\n`);
      if (file === undefined) output.report({ identity, ...(recipient && { recipient }) }, text);
      else if (!files.areOnStandardOutput)
        output.report({ file }, `${file}: the identity of ${handle || "your keys"}`);
      return exitCodes.done;
    },
  }),
];

/** Adds age's verbs to `kms`, and makes `kms import` read age identities. */
export function addAgeVerbs(verbs: readonly Verb[]): readonly Verb[] {
  const index = verbs.findIndex(({ name }) => name === "kms re-encrypt");
  return verbs.toSpliced(index + 1, 0, ...kmsAgeVerbs).map((verb) =>
    verb.name === "kms import"
      ? {
          ...createImportVerb(readIdentityOrKey),
          meaning: `${verb.meaning}\nAn age identity (AGE-SECRET-KEY-PQ-1…, from age-keygen -pq) becomes an X-Wing key with usage KEM.`,
        }
      : verb,
  );
}

/** Reads an age identity file with one post-quantum identity, or a key in any other form. */
function readIdentityOrKey(file: Uint8Array, path: string, wanted: string | undefined): KeyFile {
  if (!Buffer.from(file).includes("AGE-SECRET-KEY-")) return readKeyFile(file, path, wanted);
  const seeds = parseIdentities(file, path).flatMap((one) => ("seed" in one ? one.seed : []));
  const [seed] = seeds;
  const algorithm = "X-Wing";
  if (seed !== undefined && seeds.length === 1 && (wanted ?? algorithm) === algorithm)
    return { algorithm, bytes: seed };
  wipe(...seeds);
  throw usageError(
    seeds.length === 1
      ? `${path} contains an X-Wing key, not ${wanted}; leave out --algorithm`
      : `${path} contains ${seeds.length} identities AGE-SECRET-KEY-PQ-1…; expected one`,
  );
}
