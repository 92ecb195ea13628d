/** Directories with an empty SQLite store, as `qsp store init` creates it. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { AtEnd } from "./at-end.ts";
import { openTestStore } from "./open-store.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

type Files = readonly (readonly [name: string, content: Uint8Array])[];

let files: Promise<Files> | undefined;

/**
 * Creates a directory with a store. The store is created once per process, and copied: half of the work of an
 * opening goes into a new one.
 */
export async function makeStoreDirectory(atEnd?: AtEnd): Promise<string> {
  files ??= createFiles();
  const directory = makeTemporaryDirectory(atEnd);
  for (const [name, content] of await files) writeFileSync(join(directory, name), content, { mode: 0o600 });
  return directory;
}

async function createFiles(): Promise<Files> {
  const directory = makeTemporaryDirectory(() => {});
  const provider = await createCryptoProvider("openssl");
  await (await openTestStore(directory, provider)).close();
  await provider.close();
  const created = readdirSync(directory).map((name) => [name, readFileSync(join(directory, name))] as const);
  rmSync(directory, { recursive: true });
  return created;
}
