import type { CryptoProvider } from "../crypto/provider.ts";
import type { Store } from "../store/store.ts";

/** The dependencies of every service that stores records. */
export interface ServiceDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly now: () => Date;
}
