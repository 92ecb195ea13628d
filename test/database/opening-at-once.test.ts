import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const script = join(import.meta.dirname, "open-on-input.ts");

describe("a new data directory", () => {
  it("opened by four programs at once has one issuer key and rejects none of them", {
    timeout: 120_000,
  }, async () => {
    const dataDir = makeTemporaryDirectory();
    const programs = await Promise.all(Array.from({ length: 4 }, () => startProgram(dataDir)));
    const outcomes = await Promise.all(programs.map((open) => open()));
    const [keyIds] = outcomes.map(({ keyIds }) => keyIds).filter(Boolean);
    expect(outcomes).toEqual(Array(4).fill({ keyIds, failure: "" }));
    expect(keyIds).toHaveLength(1);
  });
});

/** Starts a program; calling the result makes it open the data directory. */
async function startProgram(dataDir: string) {
  const child = spawn(process.execPath, [script, dataDir]);
  const failure = text(child.stderr);
  await once(child.stdout, "data");
  return async (): Promise<{ keyIds: unknown; failure: string }> => {
    child.stdin.end("go");
    const output = await text(child.stdout);
    const sentence = /^\w*Error: .*/m.exec(await failure)?.[0] ?? "";
    return { keyIds: output === "" ? undefined : JSON.parse(output), failure: sentence };
  };
}
