import { expect, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { createIssuerStore } from "../../../src/identity/issuer-store.ts";
import { createUserStore } from "../../../src/identity/users.ts";
import type { Place } from "../../support/on-both.ts";
import { hashCheaply, password } from "../../support/passwords.ts";
import type { Run } from "../../support/run-here.ts";
import { runCommand, runProgram, type TokenServer } from "./command-line.ts";

/** Adds the user for whom tokens are issued. */
export async function addAda(place: Place): Promise<void> {
  const store = await place.open();
  const ada = { name: "ada", role: "user", passwordHash: hashCheaply(password) } as const;
  await createUserStore(store).add(ada, new Date());
  await store.close();
}

/**
 * Rotates the key with the CLI.
 *
 * @returns the ID of the new key, as printed
 */
export async function rotate(place: Pick<Place, "settings">, ...words: string[]): Promise<string> {
  return readNewKeyId(await runCommand(place, ["issuer", "rotate", ...words]));
}

/** Rotates the key in a separate program, so that several can run at once. */
export async function rotateByProgram(place: Pick<Place, "settings">): Promise<string> {
  return readNewKeyId(await runProgram(place, ["issuer", "rotate"]));
}

function readNewKeyId({ code, stdout, stderr }: Run): string {
  expect([code, stderr]).toEqual([0, ""]);
  const [, keyId = ""] = /^Key (\S+) now signs tokens\. /.exec(stdout) ?? [];
  expect(keyId).not.toBe("");
  return keyId;
}

/** The keys in the database, signing key first, and whether each has a seed. */
export async function keysOf(
  place: Pick<Place, "query">,
): Promise<{ keyId: unknown; signs: boolean; hasSeed: boolean }[]> {
  const rows = await place.query(
    `select k.key_id, k.retired_at_ms, s.identity from issuer_keys k
     left join sealed_secrets s on s.identity = 'issuer_keys/' || k.key_id || '/seed'
     order by case when k.retired_at_ms is null then 0 else 1 end, k.created_at_ms desc`,
  );
  return rows.map(({ key_id, retired_at_ms, identity }) => ({
    keyId: key_id,
    signs: retired_at_ms === null,
    hasSeed: identity !== null,
  }));
}

export const logIn = (server: TokenServer) => server.logIn("ada", password);

/** Opens a token issuer, like a further program on the store. */
export async function openParts(place: Pick<Place, "open">) {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const store = createIssuerStore(await place.open());
  return { provider, store, parts: { provider, store, now: () => new Date() } };
}
