/** Directories with an empty store in SQLite, as `qsp store init` leaves it. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inheritedEnvironment } from "./environment.ts";
import { runHere } from "./run-here.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

type Files = readonly (readonly [name: string, content: Uint8Array])[];

let files: Promise<Files> | undefined;

/** Makes a directory with a store, for one test. The store of a test file is created once, and copied. */
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
