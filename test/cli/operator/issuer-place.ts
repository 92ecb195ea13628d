/** A store's token-signing keys. */
import { onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { createIssuerStore } from "../../../src/identity/issuer-store.ts";
import type { Place } from "../../support/on-both.ts";

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

/** Opens a token issuer, like a further program on the store. */
export async function openParts(place: Pick<Place, "open">) {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const store = createIssuerStore(await place.open());
  return { provider, store, parts: { provider, store, now: () => new Date() } };
}
