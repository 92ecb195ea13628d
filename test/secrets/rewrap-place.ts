/** Places whose master key is rotated. */
import { readFileSync } from "node:fs";
import { keyVariables, type MasterKeySource } from "../../src/secrets/master-key.ts";
import { rewrapStore } from "../../src/secrets/rewrap.ts";
import type { Store } from "../../src/store/store.ts";
import { putSecrets, readSecretText } from "../support/entries.ts";
import type { Place } from "../support/on-both.ts";
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

/** The content of a sealed_secrets row, with bytes in hexadecimal. */
export interface SealedRow {
  readonly identity: string;
  readonly masterKeyId: string;
  readonly wrappedDataKey: string;
  readonly ciphertext: string;
}

/** Secrets by identity. */
export type Secrets = ReadonlyMap<string, string>;

/** Rotates a place's master key with the operator's command line. */
export function rotate({ settings }: Place, env?: Readonly<Record<string, string>>): Promise<Run> {
  return runToEndHere(["master-key", "rotate", ...settings], env);
}

/** Creates a store with secrets in it, and closes it. */
export async function leaveSecrets(
  place: Place,
  count: number,
  masterKey = place.masterKey,
): Promise<Secrets> {
  const store = await place.open({ masterKey });
  const secrets = secretsNamed("things", 1, count);
  await putSecrets(store, secrets);
  await store.close();
  return secrets;
}

export function secretsNamed(kind: string, from: number, count: number): Secrets {
  const numbers = Array.from({ length: count }, (_, i) => String(from + i).padStart(5, "0"));
  return new Map(numbers.map((number) => [`${kind}/${number}/seed`, `secret ${kind} ${number}`]));
}

/** Opens the secrets with these identities. */
export async function readSecrets(store: Store, identities: Secrets | readonly string[]): Promise<Secrets> {
  const entries = [...identities.keys()].map(async (key) => {
    const identity = typeof key === "string" ? key : (identities as readonly string[])[key];
    return [identity, (await readSecretText(store, identity ?? "")) ?? ""] as [string, string];
  });
  return new Map(await Promise.all(entries));
}

export async function readSealed({ query }: Place): Promise<SealedRow[]> {
  const rows = await query("select * from sealed_secrets order by identity");
  const hex = (value: unknown): string => Buffer.from(value as Uint8Array).toString("hex");
  return rows.map((row) => ({
    identity: String(row.identity),
    masterKeyId: String(row.master_key_id),
    wrappedDataKey: hex(row.wrapped_data_key),
    ciphertext: hex(row.ciphertext),
  }));
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
