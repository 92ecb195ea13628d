/** `qsp master-key combine`: works without a store, because both may be lost. */
import { existsSync } from "node:fs";
import { wipe } from "../../crypto/bytes.ts";
import { combineShares, type KeyShare, readShare, shareDigits } from "../../crypto/key-shares.ts";
import { nameMasterKey } from "../../crypto/sealing.ts";
import { secretFile } from "../command-line/options.ts";
import { usageError } from "../exit-codes.ts";
import { decodeText, explainKey, explainKeyError, nameInput, readWhole } from "../files/read.ts";
import { counted } from "../output/output.ts";
import { declareVerb, type Verb } from "../verb.ts";

/** Maximum size of a file with shares, in bytes: more than all shares of a key have. */
const maxBytes = 65_536;

/** A share, and where it was read. */
interface PlacedShare extends KeyShare {
  readonly place: string;
}

export const masterKeyCombineVerbs: readonly Verb[] = [
  declareVerb({
    line: "master-key combine [FILE…]",
    operandFiles: { FILE: "reads" },
    options: {
      out: secretFile("New file for the master key (mode 0600), - for a pipe"),
    },
    meaning:
      "Restores the master key from shares that qsp master-key split made: files, or standard input, where a blank line\n" +
      "separates the shares. Spaces, hyphens, case and lines that begin with # do not matter.",
    example: "qsp master-key combine share-1.txt share-3.txt share-5.txt --out master.key",
    isLocal: true,
    settings: {},
    async run({ operands, options, files, output }) {
      options.need("out");
      // It would appear in the error for a missing file, and it already is in the shell's history.
      if (
        operands.some(
          (operand) => operand.replaceAll(/[\s-]/g, "").length === shareDigits && !existsSync(operand),
        )
      )
        throw usageError(
          "an operand looks like a share, not a file; pass shares on standard input, or in files",
        );
      const shares: PlacedShare[] = [];
      try {
        for (const path of operands.length === 0 ? ["-"] : operands) shares.push(...(await readShares(path)));
        requireEnough(shares);
        const key = await combineShares(shares).catch((error: unknown) => {
          throw explainKeyError("the shares", error);
        });
        const digits = Buffer.from(`${Buffer.from(key).toString("hex")}\n`);
        const keyId = nameMasterKey(key);
        wipe(key);
        try {
          const file = files.write("out", digits);
          if (!files.areOnStandardOutput)
            output.print(
              `${file}: the master key ${keyId}, restored from ${counted(shares.length, "share")}`,
            );
        } finally {
          wipe(digits);
        }
      } finally {
        wipe(...shares.map(({ secret }) => secret));
      }
    },
  }),
];

/**
 * Reads the shares in a file, or those that a person types.
 *
 * @throws CliError that says which share is mistyped
 */
async function readShares(path: string): Promise<PlacedShare[]> {
  const isTyped = path === "-" && process.stdin.isTTY === true;
  if (isTyped)
    process.stderr.write(
      `Type the ${shareDigits} characters of each share, and a blank line after it; end with Ctrl-D.\n`,
    );
  const name = nameInput(path);
  const bytes = await readWhole(path, maxBytes);
  try {
    const blocks = findBlocks(decodeText(bytes, name));
    if (blocks.length === 0) throw usageError(`${name} contains no share`);
    return blocks.map(({ line, text }, i) => {
      const place = blocks.length === 1 ? name : `share ${i + 1} in ${name} (line ${line})`;
      return { place, ...explainKey(place, () => readShare(text)) };
    });
  } finally {
    wipe(bytes);
  }
}

/** Finds the shares in a text: a share ends with its last digit, a blank line or a comment. */
function findBlocks(text: string): { readonly line: number; text: string }[] {
  const blocks: { readonly line: number; text: string }[] = [];
  let isOpen = false;
  for (const [i, line] of text.split("\n").entries()) {
    const isShare = line.trim() !== "" && !line.trimStart().startsWith("#");
    if (isShare && !isOpen) blocks.push({ line: i + 1, text: "" });
    const block = blocks.at(-1);
    if (isShare && block !== undefined) block.text += `${line}\n`;
    isOpen = isShare && (block?.text.replaceAll(/[\s-]/g, "").length ?? 0) < shareDigits;
  }
  return blocks;
}

/** @throws CliError unless the shares are of one set, and as many different ones as it takes */
function requireEnough(shares: readonly PlacedShare[]): void {
  const [first] = shares;
  if (first === undefined) throw usageError("there is no share");
  const { setId, threshold, keyId } = first;
  for (const [i, share] of shares.entries()) {
    if (share.setId !== setId)
      throw usageError(
        `${share.place} is of set ${share.setId}, and ${first.place} of set ${setId}; all shares must be of one set`,
      );
    if (share.threshold !== threshold || share.keyId !== keyId)
      throw usageError(
        `${share.place} and ${first.place} name different thresholds or keys, although both are of set ${setId}; one of them is forged`,
      );
    const same = shares.slice(0, i).find((other) => isSame(other, share));
    if (same !== undefined)
      throw usageError(`${same.place} and ${share.place} are the same share, number ${share.number}`);
  }
  if (shares.length < threshold)
    throw usageError(
      `${counted(shares.length, "share")} of set ${setId} cannot restore the key; it takes ${threshold}: add ${threshold - shares.length} more`,
    );
}

/** Two shares with the same point of the polynomial, its last byte, could not be combined. */
function isSame(one: KeyShare, other: KeyShare): boolean {
  return one.number === other.number || one.secret.at(-1) === other.secret.at(-1);
}
