/** Parses mutations.txt. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A small mistake in the code. */
export interface Mutation {
  readonly file: string;
  readonly mistake: string;
  readonly text: string;
  readonly replacement: string;
}

const root = join(import.meta.dirname, "../..");

/** @throws Error for a mistake that does not apply: its text must occur exactly once in its file */
export function readMutations(): Mutation[] {
  const [, ...blocks] = readFileSync(join(import.meta.dirname, "mutations.txt"), "utf8")
    .trim()
    .split("\n\n");
  return blocks.map((block) => {
    const match = /^(\S+): (.+)\n- (.+)\n\+ (.+)$/.exec(block);
    if (match === null) throw new Error(`mutations.txt: not a mutation, which has three lines:\n${block}`);
    const [, file = "", mistake = "", text = "", replacement = ""] = match;
    const count = readFileSync(join(root, file), "utf8").split(text).length - 1;
    if (count !== 1)
      throw new Error(`${file} has this text ${count} times; it must occur exactly once: ${text}`);
    return { file, mistake, text, replacement };
  });
}
