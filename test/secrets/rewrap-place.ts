/** Places whose master key is rotated. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { keyVariables, type MasterKeySource } from "../../src/secrets/master-key.ts";
import { rewrapStore } from "../../src/secrets/rewrap.ts";
import type { Store } from "../../src/store/store.ts";
import { putSecrets, readSecretText } from "../support/entries.ts";
import { type MakePlace, makeSqlitePlace, type Place, type Row } from "../support/on-both.ts";
import { openDatabase } from "../support/open-store.ts";
import { type Run, runToEndHere } from "../support/run-here.ts";

/** Rotates a place's master key in this process. */
export async function rewrap(
  place: Place,
  masterKey = place.masterKey,
  onProgress: (moved: number, total: number) => void = () => {},
) {
  const database = await openDatabase(place.location, "existing");
  try {
    return await rewrapStore(database, masterKey, onProgress);
  } finally {
    await database.close();
  }
}

/** Secrets by identity. */
export type Secrets = ReadonlyMap<string, string>;

/** Rotates a place's master key with the operator's command line. */
export function rotate({ settings }: Place, env?: Readonly<Record<string, string>>): Promise<Run> {
  return runToEndHere(["master-key", "rotate", ...settings], env);
}

/** Creates a store with secrets in it, and closes it. */
export async function leaveSecrets(
  count: number,
  { makePlace = makeSqlitePlace, masterKey }: { makePlace?: MakePlace; masterKey?: MasterKeySource } = {},
): Promise<{ readonly place: Place; readonly secrets: Secrets }> {
  const place = await makePlace();
  const store = await place.open(masterKey && { masterKey });
  const secrets = secretsNamed("things", 1, count);
  await putSecrets(store, secrets);
  await store.close();
  return { place, secrets };
}

/** Expects these secrets in a place, as the next program that opens the store reads them. */
export async function expectSecrets(
  place: Place,
  secrets: Secrets,
  masterKey = place.masterKey,
): Promise<void> {
  const store = await place.open({ masterKey });
  expect(await readSecrets(store, secrets)).toEqual(secrets);
  await store.close();
}

export function secretsNamed(kind: string, from: number, count: number): Secrets {
  const numbers = Array.from({ length: count }, (_, i) => String(from + i).padStart(5, "0"));
  return new Map(numbers.map((number) => [`${kind}/${number}/seed`, `secret ${kind} ${number}`]));
}

/** Opens the secrets with these identities. */
export async function readSecrets(store: Store, secrets: Secrets): Promise<Secrets> {
  const entries = [...secrets.keys()].map(
    async (identity) => [identity, (await readSecretText(store, identity)) ?? ""] as const,
  );
  return new Map(await Promise.all(entries));
}

export function readSealed({ query }: Place): Promise<Row[]> {
  return query("select * from sealed_secrets order by identity");
}

/** The IDs of the master keys that seal a place's secrets. */
export async function readKeyIds(place: Place): Promise<unknown[]> {
  return [...new Set((await readSealed(place)).map((row) => row.master_key_id))];
}

/** Master keys as an operator gives them in variables. */
export function valuesOf(current: string, next?: string): MasterKeySource {
  return { kind: "values", settings: keyVariables, current, next };
}

export function readKey({ keyFile }: Pick<Place, "keyFile">): Buffer {
  return Buffer.from(readFileSync(keyFile, "utf8").trim(), "hex");
}

export function readPreviousKey({ keyFile }: Place): Buffer {
  return readKey({ keyFile: `${keyFile}.previous` });
}
