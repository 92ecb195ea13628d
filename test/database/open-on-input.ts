/**
 * Opens the store of a data directory and its issuer as src/app.ts does, when a byte arrives on standard
 * input, and prints the key IDs as JSON: node open-on-input.ts <data directory>
 */
import { once } from "node:events";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { openIssuer } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { openTestStore } from "../support/open-store.ts";

const dataDir = process.argv[2] ?? "";
const provider = await createCryptoProvider("openssl");
process.stdout.write("waiting\n");
await once(process.stdin, "data");
process.stdin.pause();
const store = await openTestStore(dataDir, provider);
const issuer = await openIssuer({ provider, store: createIssuerStore(store), now: () => new Date() });
process.stdout.write(JSON.stringify((await issuer.publicJwks()).map(({ kid }) => kid)));
await store.close();
await provider.close();
