import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { openIssuer, rotateIssuerKey } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { makeSqlitePlace } from "../support/on-both.ts";

describe("a store whose issuer key has lost its seed", () => {
  it.each(["delete from sealed_secrets", "update sealed_secrets set ciphertext = $1"])(
    "issues no token, and names the key: %s",
    async (change) => {
      const place = await makeSqlitePlace();
      const store = await place.open();
      const provider = await createCryptoProvider("openssl");
      onTestFinished(() => provider.close());
      const parts = { provider, store: createIssuerStore(store), now: () => new Date() };
      const issuer = await openIssuer(parts);
      onTestFinished(() => issuer.close());
      // The issuer has its first key's seed in memory.
      const keyId = await rotateIssuerKey(parts, { revoke: false });
      await place.query(
        `${change} where identity like '%${keyId}%'`,
        change.includes("$1") ? [new Uint8Array(60)] : [],
      );
      await expect(issuer.issue("ada")).rejects.toMatchObject({
        constructor: RecordDamagedError,
        record: `issuer key ${keyId}`,
      });
    },
  );
});
