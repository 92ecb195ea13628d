/** OAuth 2 clients for tests. */
import { type Config, readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { hashClientSecret } from "../../src/identity/client-secrets.ts";
import { createClientStore, type NewClient } from "../../src/identity/clients.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { openStore } from "./open-store.ts";

/** The URL that test servers advertise. */
export const issuerUrl = "https://id.example.com";

/** The client secret in the examples of the API description. */
export const secret = "Jk3lq0w2Yd7Xb1mZr8tUv5nCs9aEo4gH6iPfRxWyTzQ";

/** A client that has only the rights that a test gives it. */
export function describeClient(name: string, rights: Partial<NewClient> = {}): NewClient {
  return {
    name,
    role: "user",
    secretHash: hashClientSecret(secret),
    scopes: [],
    audiences: [],
    resources: [],
    mayExchange: false,
    ...rights,
  };
}

/** Adds a client to a server's database, whether or not the server is running. */
export async function addClient(config: Config | readonly string[], client: NewClient): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const settings = "dataDir" in config ? config : readConfig(config, {});
  const store = await openStore({ ...storeSettings(settings), provider });
  try {
    if (!(await createClientStore(store).add(client, new Date())))
      throw new Error(`the name ${client.name} is taken`);
  } finally {
    await store.close();
    await provider.close();
  }
}
