import { rmSync } from "node:fs";
import { maxShares, minThreshold, splitKey } from "../../crypto/key-shares.ts";
import { nameMasterKey } from "../../crypto/sealing.ts";
import { StorageError } from "../../database/store-error.ts";
import { openKeyring, readNext } from "../../secrets/master-key.ts";
import type { VerbLine } from "../command-line/options.ts";
import { usageError } from "../exit-codes.ts";
import type { UsedFile } from "../files/uses.ts";
import type { StoreVerb } from "./store-verb.ts";

/** Splits the master key for a backup on paper. */
export const masterKeySplit: StoreVerb = {
  line: "master-key split [NAME]",
  options: {
    shares: { value: "NUMBER", meaning: `Number of shares, up to ${maxShares}` },
    threshold: { value: "NUMBER", meaning: `Number of shares that restore the key, from ${minThreshold}` },
  },
  meaning:
    "Splits the master key into shares for a backup on paper: NAME-1.txt and so on (share-1.txt by default), mode 0600.\n" +
    "qsp master-key combine restores the key from enough of them; fewer reveal nothing about it.",
  example: "qsp master-key split --shares 5 --threshold 3",
  otherFiles: listFiles,
  async run({ operands, options, files, masterKey }) {
    const line = { operands, options };
    const threshold = readNumber(line, "threshold");
    const paths = listFiles(line).map(({ path }) => path);
    if (threshold > paths.length)
      throw usageError(`--threshold ${threshold} is more than the ${paths.length} shares`);
    if (readNext(masterKey) !== undefined)
      throw new StorageError(
        "a rotation of the master key has begun: end it with qsp master-key rotate, then split the new key",
      );
    const key = openKeyring(masterKey, false).current;
    const keyId = nameMasterKey(key);
    const { setId, shares } = await splitKey(key, paths.length, threshold);
    const written: string[] = [];
    try {
      for (const [i, share] of shares.entries()) {
        const path = paths[i] ?? "";
        const title = `# Share ${i + 1} of ${shares.length} (set ${setId}) of the master key ${keyId}.`;
        const advice = `# Any ${threshold} of them restore it: qsp master-key combine`;
        files.write(path, `${title}\n${advice}\n${share}\n`);
        written.push(path);
      }
    } catch (error) {
      for (const path of written) rmSync(path);
      throw error;
    }
    return `Split the master key ${keyId} into ${paths[0]} to ${paths.at(-1)}; any ${threshold} of them restore it.
Print each file for a different person, and try the restore. Then remove the files: together, they are the key.`;
  },
};

function listFiles(line: VerbLine): readonly UsedFile[] {
  const [name = "share"] = line.operands;
  const paths = Array.from({ length: readNumber(line, "shares") }, (_, i) => `${name}-${i + 1}.txt`);
  return paths.map((path) => ({ key: path, name: "a share", path, use: "creates", isSecret: true }));
}

function readNumber({ options }: VerbLine, option: "shares" | "threshold"): number {
  const value = options.whole(option, minThreshold, maxShares);
  if (value === undefined) throw usageError(`--${option} is missing; for example --shares 5 --threshold 3`);
  return value;
}
