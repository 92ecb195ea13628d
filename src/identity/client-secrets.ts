/** Client secrets: 256 random bits. The server stores only a SHA-256 hash of each. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { isAccountName } from "./account-name.ts";
import type { ClientStore, StoredClient } from "./clients.ts";

const secretBytes = 32;
const hashName = "sha256";
/** The format of a secret: 43 characters of base64url. */
const secretPattern = /^[A-Za-z0-9_-]{43}$/;

/**
 * Authenticates a client.
 *
 * @returns undefined for an unknown client or a wrong secret
 * @throws RECORD_DAMAGED
 */
export type CheckClient = (name: string, secret: string) => Promise<StoredClient | undefined>;

/** Generates a secret, 43 characters of base64url, and the hash to store. */
export function makeClientSecret(): { readonly secret: string; readonly secretHash: string } {
  const secret = randomBytes(secretBytes).toString("base64url");
  return { secret, secretHash: hashClientSecret(secret) };
}

/**
 * Hashes a secret.
 *
 * @returns `sha256$hash`, the hash in base64
 */
export function hashClientSecret(secret: string): string {
  return `${hashName}$${hashSecret(secret).toString("base64")}`;
}

/**
 * Creates the client secret check.
 *
 * Secrets are random, so they cannot be guessed, and a fast hash does not reveal them. A slow hash, as for
 * passwords, would cost a resource server 300 ms per introspection, and let wrong secrets delay users'
 * log-ins. A limit on failures, as for passwords, would let anyone lock out a client whose name is known.
 */
export function createClientCheck(clients: ClientStore): CheckClient {
  return async (name, secret) => {
    if (!isAccountName(name) || !secretPattern.test(secret)) return undefined;
    const client = await clients.find(name);
    return client !== undefined && matchesHash(secret, client.secretHash) ? client : undefined;
  };
}

function matchesHash(secret: string, secretHash: string): boolean {
  const [name, text = ""] = secretHash.split("$");
  const expected = Buffer.from(text, "base64");
  const given = hashSecret(secret);
  return name === hashName && expected.length === given.length && timingSafeEqual(expected, given);
}

function hashSecret(secret: string): Buffer {
  return createHash(hashName).update(secret).digest();
}
