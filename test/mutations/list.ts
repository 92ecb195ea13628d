/** Reads the mistakes of mutations.txt. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A mistake. */
export interface Mutation {
  readonly file: string;
  readonly mistake: string;
  readonly text: string;
  readonly replacement: string;
}

const root = join(import.meta.dirname, "../..");

/** @throws Error for a mistake that cannot be made: its text must be in its file once */
export function readMutations(): Mutation[] {
  const [, ...blocks] = readFileSync(join(import.meta.dirname, "mutations.txt"), "utf8")
    .trim()
    .split("\n\n");
  return blocks.map((block) => {
    const match = /^(\S+): (.+)\n- (.+)\n\+ (.+)$/.exec(block);
    if (match === null) throw new Error(`mutations.txt: this has not the form of a mutation:\n${block}`);
    const [, file = "", mistake = "", text = "", replacement = ""] = match;
    const count = readFileSync(join(root, file), "utf8").split(text).length - 1;
    if (count !== 1)
      throw new Error(`${file} has this text ${count} times, which must be there once: ${text}`);
    return { file, mistake, text, replacement };
  });
}
