import { createCryptoProvider } from "../../crypto/create-provider.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { OpenMode } from "../../database/database.ts";
import { openStore } from "../../open-store.ts";
import type { Store } from "../../store/store.ts";
import type { StoreVerbInput } from "./store-verb.ts";

/** Lends a command its store, with or without running servers, and a crypto provider; closes both. */
export async function withStore<T>(
  { config, location, masterKey, loadTables }: StoreVerbInput,
  mode: OpenMode,
  work: (store: Store, provider: CryptoProvider) => Promise<T>,
): Promise<T> {
  const onFallback = (reason: string) => process.stderr.write(`qsp: warning: ${reason}\n`);
  const provider = await createCryptoProvider(config.cryptoProvider, { onFallback });
  try {
    const store = await openStore({ location, masterKey, provider, mode, tables: await loadTables() });
    try {
      return await work(store, provider);
    } finally {
      await store.close();
    }
  } finally {
    await provider.close();
  }
}

/** Works on a store that exists, and prints what the work says. @returns the exit code */
export function printFromStore(
  input: StoreVerbInput,
  work: (store: Store, provider: CryptoProvider) => Promise<string>,
): Promise<number> {
  return withStore(input, "existing", async (store, provider) => {
    process.stdout.write(`${await work(store, provider)}\n`);
    return 0;
  });
}
