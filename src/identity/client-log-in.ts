/** Authenticates clients by their secrets. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { ClientStore, StoredClient } from "./clients.ts";
import { type CheckCredentials, type CredentialDeps, createCredentialCheck } from "./credentials.ts";

/** Secrets to remember. */
const maxRemembered = 10_000;

/**
 * Creates the check of clients' secrets.
 *
 * A resource server introspects a token for each call that it gets, and a hash of the secret takes 300 ms. So the check
 * remembers an HMAC of each secret that was right, for as long as the client keeps it. Secrets are random, so that a
 * fast hash of them tells nothing, unlike one of a password that somebody made up.
 */
export function createClientCheck(
  clients: ClientStore,
  deps: CredentialDeps,
): CheckCredentials<StoredClient> {
  const key = randomBytes(32);
  const remembered = new LRUCache<string, Uint8Array>({ max: maxRemembered });
  const digest = (client: StoredClient, secret: string): Uint8Array =>
    createHmac("sha256", key)
      .update(JSON.stringify([client.name, client.secretHash, secret]))
      .digest();
  const check = createCredentialCheck(deps, {
    kind: "client",
    find: clients.find,
    hashOf: ({ secretHash }) => secretHash,
  });
  return async (credentials) => {
    const { name, password } = credentials;
    const known = remembered.get(name);
    if (known !== undefined) {
      const client = await clients.find(name);
      if (client !== undefined && timingSafeEqual(known, digest(client, password))) return client;
    }
    const client = await check(credentials);
    if (client !== undefined) remembered.set(name, digest(client, password));
    return client;
  };
}
