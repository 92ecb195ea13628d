import { createCryptoProvider } from "../../crypto/create-provider.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { Database, DatabaseLocation, OpenMode } from "../../database/database.ts";
import { openDatabase, openStore, type StoreTables } from "../../open-store.ts";
import type { Store } from "../../store/store.ts";
import type { StoreVerb, StoreVerbInput } from "./store-verb.ts";

/** Opens a store and a crypto provider for a command, and closes both afterwards; works while servers run. */
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

/** What a verb that works on an existing store receives. */
interface StoreWork extends StoreVerbInput {
  readonly store: Store;
  readonly provider: CryptoProvider;
}

/** Declares a verb that works on an existing store. */
export function existingStoreVerb({
  work,
  ...declared
}: Omit<StoreVerb, "run"> & {
  /** @returns the text or outcome of the verb */
  work(input: StoreWork): ReturnType<StoreVerb["run"]>;
}): StoreVerb {
  return {
    ...declared,
    run: (input) => withStore(input, "existing", (store, provider) => work({ ...input, store, provider })),
  };
}

/** Opens a database for a command without unsealing its secrets, and closes it afterwards. */
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
