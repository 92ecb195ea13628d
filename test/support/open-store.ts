/** Opens the store of a data directory as src/app.ts does. */
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { sqliteIn } from "../../src/database/database.ts";
import { openStore } from "../../src/open-store.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import type { Store } from "../../src/store/store.ts";

export function openTestStore(dataDir: string, provider: CryptoProvider): Promise<Store> {
  return openStore({ location: sqliteIn(dataDir), masterKey: masterKeyIn(dataDir), provider });
}
