/** What the calls of a repository use. */
import type { CallerInput } from "../../src/identity/principal.ts";
import type { Principal } from "../../src/records/ownership.ts";
import type { DefiStore } from "../../src/services/defi/store.ts";
import type { ChangeDeps } from "../../src/services/kms/change.ts";
import type { ContentStore } from "./contents.ts";
import type { TufStore } from "./store.ts";
import type { Repository } from "./tables.ts";

/**
 * Checks the `authorization` header of a caller who reads a file.
 *
 * @throws TOKEN_… reasons, SCOPE_MISSING
 */
export type RequireReader = (authorization: string | null) => Promise<void>;

export interface TufDeps extends ChangeDeps {
  readonly tuf: TufStore;
  readonly governance: DefiStore;
  readonly contents: ContentStore;
  /** Requires a token to read a file; undefined if anyone may. */
  readonly requireReader: RequireReader | undefined;
}

/** Who acts on a repository, and until when. */
export type Who = Pick<CallerInput, "principal" | "signal">;

/** Acts as the repository's owner, even if an administrator made the call: its keys and wallets are the owner's. */
export function asOwner({ owner }: Pick<Repository, "owner">, { principal, signal }: Who): Who {
  return { principal: { ...principal, userId: owner, owner } satisfies Principal, signal };
}
