import { createCryptoProvider } from "../../crypto/create-provider.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { Database, DatabaseLocation, OpenMode } from "../../database/database.ts";
import { openDatabase, openStore, type StoreTables } from "../../open-store.ts";
import type { Store } from "../../store/store.ts";
import type { StoreVerb, StoreVerbInput } from "./store-verb.ts";

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

/** The input of a verb that works on a store that exists. */
interface StoreWork extends StoreVerbInput {
  readonly store: Store;
  readonly provider: CryptoProvider;
}

/** Declares a verb that works on a store that exists. */
export function existingStoreVerb({
  work,
  ...declared
}: Omit<StoreVerb, "run"> & {
  /** @returns what the verb says */
  work(input: StoreWork): ReturnType<StoreVerb["run"]>;
}): StoreVerb {
  return {
    ...declared,
    run: (input) => withStore(input, "existing", (store, provider) => work({ ...input, store, provider })),
  };
}

/** Lends a command a database whose secrets stay sealed, and closes it. */
export async function withDatabase<T>(
  tables: StoreTables,
  location: DatabaseLocation,
  mode: OpenMode,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(tables, location, mode);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
