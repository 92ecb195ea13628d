/** Servers that share a store but whose clocks differ by a minute. */
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { openIssuer, rotateIssuerKey } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { describeStores } from "../support/on-both.ts";

const minuteMs = 60_000;

describeStores("a server whose clock is a minute behind another server's", (makePlace) => {
  it("rejects tokens of a key that the other server has revoked", async () => {
    const store = await (await makePlace()).open();
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    const keys = createIssuerStore(store);
    const issuer = await openIssuer({ provider, store: keys, now: () => new Date() });
    onTestFinished(() => issuer.close());
    const { token } = await issuer.issue("ada");
    expect((await issuer.check(token)).ok).toBe(true);
    const ahead = { provider, store: keys, now: () => new Date(Date.now() + minuteMs) };
    await rotateIssuerKey(ahead, { revoke: true });
    await issuer.publicJwks(); // Reads the store, as the poll does.
    expect((await issuer.check(token)).ok).toBe(false);
  });
});
