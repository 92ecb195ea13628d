import type { CryptoProvider } from "../crypto/provider.ts";
import type { Store } from "../store/store.ts";

/** Dependencies that every service with stored records needs. */
export interface ServiceDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly now: () => Date;
}
