/** What the calls of a repository use. */
import type { CallerInput } from "../../src/identity/principal.ts";
import type { Principal } from "../../src/records/ownership.ts";
import type { DefiStore } from "../../src/services/defi/store.ts";
import type { ChangeDeps } from "../../src/services/kms/change.ts";
import { nameOwner } from "../../src/services/kms/find-key.ts";
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
export async function asOwner(deps: Pick<TufDeps, "users">, repository: Owned, who: Who): Promise<Who> {
  const { owner } = repository;
  const { principal, signal } = who;
  return principal.userId === owner
    ? { principal: { ...principal, owner }, signal }
    : actFor(deps, repository, who);
}

/** Acts for the repository's owner. Audit entries name both. */
export async function actFor(
  { users }: Pick<TufDeps, "users">,
  { owner }: Owned,
  { principal, signal }: Who,
): Promise<Who> {
  const actsFor = await nameOwner(users, owner);
  return { principal: { ...principal, userId: owner, owner, actsFor } satisfies Principal, signal };
}

type Owned = Pick<Repository, "owner">;
