/** Directories with an empty SQLite store, as `qsp store init` creates it. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inheritedEnvironment } from "./environment.ts";
import { runHere } from "./run-here.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

type Files = readonly (readonly [name: string, content: Uint8Array])[];

let files: Promise<Files> | undefined;

/** Creates a directory with a store, for one test. The store is created once per test file, and copied. */
export async function makeStoreDirectory(): Promise<string> {
  files ??= createFiles();
  const directory = makeTemporaryDirectory();
  for (const [name, content] of await files) writeFileSync(join(directory, name), content, { mode: 0o600 });
  return directory;
}

async function createFiles(): Promise<Files> {
  const directory = makeTemporaryDirectory();
  const words = ["store", "init", "--data-dir", directory];
  const { code, stderr } = await runHere(words, { env: inheritedEnvironment() });
  if (code !== 0) throw new Error(`qsp store init ended with ${code}: ${stderr}`);
  return readdirSync(directory).map((name) => [name, readFileSync(join(directory, name))]);
}
