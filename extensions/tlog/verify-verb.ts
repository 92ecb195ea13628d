/** `qsp log verify`: verifies a log's checkpoints and proofs without a server. */

import { inputFile } from "../../src/cli/command-line/options.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import { readText } from "../../src/cli/files/read.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { counted } from "../../src/cli/output/output.ts";
import type { Verb, VerbInput } from "../../src/cli/verb.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { hashLeaf } from "../../src/merkle/hashes.ts";
import { type Checkpoint, parseCheckpoint } from "./checkpoint.ts";
import { NoteError, parseNote } from "./note.ts";
import { type ConsistencyFile, type InclusionFile, parseProofFile } from "./proof-files.ts";
import { parseVerifierKey, type VerifierKey } from "./verifier-keys.ts";
import { verifyNote } from "./verify-note.ts";
import { verifyConsistency, verifyInclusion } from "./verify-proofs.ts";

interface Verdict {
  readonly checkpoint: Checkpoint;
  /** The problem, for a person; undefined if everything is valid. */
  readonly problem: string | undefined;
  /** What was found valid. */
  readonly statement: string;
}

export const verifyVerbs: readonly Verb[] = [
  {
    name: "log verify",
    operands: ["FILE"],
    operandFiles: { FILE: "reads" },
    isLocal: true,
    options: {
      vkey: {
        value: "KEY",
        meaning:
          "Key that must have signed: a verifier key, or @FILE with one; repeat it to require several keys",
        isMany: true,
        file: "data",
      },
      leaf: {
        value: "HEX",
        meaning: "With a proof from qsp log prove: the known entryHash or blockHash, 64 digits",
      },
      checkpoint: inputFile("With a proof from qsp log prove-growth: the checkpoint that you stored"),
    },
    meaning:
      "Verifies a checkpoint, or a proof from qsp log prove or prove-growth, without a server. The checkpoint's origin\n" +
      "must match the name of the first key. To require a witness's cosignature, add its key.",
    example: "qsp log verify audit.checkpoint --vkey @audit.vkey",
    run: (input) =>
      withProvider(async (provider) => {
        const { problem, statement, checkpoint } = await verifyFile(provider, input);
        const { origin, size } = checkpoint;
        return input.output.report(
          { valid: problem === undefined, origin, size, ...(problem !== undefined && { problem }) },
          problem === undefined ? `Valid: ${statement}.` : `NOT valid: ${problem}.`,
          problem === undefined,
        );
      }),
  },
];

/** Names the unreadable file or key in a usage error, as for a missing file. */
function naming<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof NoteError ? usageError(`${what} ${error.message}`) : error;
  }
}

async function verifyFile(provider: CryptoProvider, { operands, options }: VerbInput): Promise<Verdict> {
  const keys = options.all("vkey").map(readKey);
  if (keys.length === 0)
    throw usageError("--vkey is missing; give a key that you did not fetch from the server itself");
  const [file = ""] = operands;
  const text = readText(file);
  const proof = naming(file, () => parseProofFile(text));
  const [leaf, stored] = [options.text("leaf"), options.text("checkpoint")];
  if ((proof?.kind === "inclusion") !== (leaf !== undefined))
    throw usageError("--leaf is required for a proof from qsp log prove, and not allowed for anything else");
  if ((proof?.kind === "consistency") !== (stored !== undefined))
    throw usageError(
      "--checkpoint is required for a proof from qsp log prove-growth, and not allowed for anything else",
    );
  const note = proof?.checkpoint ?? text;
  const { checkpoint, problem } = await verifySigned(provider, file, note, keys);
  const head = `checkpoint of ${checkpoint.origin} with ${counted(checkpoint.size, "entry", "entries")}`;
  if (problem !== undefined || proof === undefined) return { checkpoint, problem, statement: head };
  if (proof.kind === "inclusion")
    return {
      checkpoint,
      problem: checkInclusion(proof, checkpoint, readLeaf(leaf ?? "")),
      statement: `leaf ${proof.index} is in the ${head}`,
    };
  // The stored checkpoint is verified too: it may come from the same source.
  const earlierFile = stored ?? "";
  const earlier = await verifySigned(provider, earlierFile, readText(earlierFile), keys.slice(0, 1));
  return {
    checkpoint,
    problem: earlier.problem ?? checkConsistency(proof, earlier.checkpoint, checkpoint),
    statement: `the ${head} starts with all ${counted(earlier.checkpoint.size, "entry", "entries")} of your stored checkpoint`,
  };
}

/** @param file the text's origin, which prefixes the problem */
async function verifySigned(
  provider: CryptoProvider,
  file: string,
  text: string,
  keys: readonly VerifierKey[],
): Promise<{ readonly checkpoint: Checkpoint; readonly problem: string | undefined }> {
  const note = naming(file, () => parseNote(Buffer.from(text)));
  const checkpoint = naming(file, () => parseCheckpoint(note.text));
  const [logKey] = keys;
  if (checkpoint.origin !== logKey?.name)
    return {
      checkpoint,
      problem: `${file}: the checkpoint belongs to ${checkpoint.origin}, not ${logKey?.name}`,
    };
  for (const key of keys) {
    const found = await verifyNote(provider, note, key);
    if (found === undefined)
      return { checkpoint, problem: `${file}: ${key.name} has not signed it with its ${key.type} key` };
    if (found === "invalid")
      return {
        checkpoint,
        problem: `${file}: the signature by ${key.name} with its ${key.type} key does not verify`,
      };
  }
  return { checkpoint, problem: undefined };
}

function checkInclusion(
  { index, hashes }: InclusionFile,
  { size, root }: Checkpoint,
  leaf: Uint8Array,
): string | undefined {
  const isIncluded = verifyInclusion({ index, size, leafHash: hashLeaf(leaf), hashes, root });
  return isIncluded ? undefined : `the proof does not show that this is leaf ${index} of the log`;
}

function checkConsistency(
  { from, hashes }: ConsistencyFile,
  earlier: Checkpoint,
  { size, root }: Checkpoint,
): string | undefined {
  if (from !== earlier.size)
    return `the proof is for a checkpoint with ${counted(from, "entry", "entries")}, but the stored one has ${earlier.size}`;
  const isConsistent = verifyConsistency({ from, to: size, fromRoot: earlier.root, toRoot: root, hashes });
  return isConsistent ? undefined : "the log does not start with the entries of your stored checkpoint";
}

function readKey(given: string): VerifierKey {
  if (!given.startsWith("@")) return naming("--vkey: the key", () => parseVerifierKey(given));
  const file = given.slice(1);
  return naming(`--vkey: ${file}`, () => parseVerifierKey(readText(file).trim()));
}

function readLeaf(digits: string): Uint8Array {
  if (/^[0-9a-f]{64}$/i.test(digits)) return Buffer.from(digits, "hex");
  throw usageError("--leaf: expected 64 hexadecimal digits");
}
