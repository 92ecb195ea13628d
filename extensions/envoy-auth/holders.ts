/** Looks up token holders and caches them: a proxy sends the same token with every request of a client. */
import { Code, type ConnectError } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { refuse } from "../../src/errors.ts";
import { type Accounts, findHolder, type TokenHolder } from "../../src/identity/authenticate.ts";
import type { Issuer, TokenClaims } from "../../src/identity/issuer.ts";

/** Milliseconds for which a holder is trusted without checking users, clients and revoked tokens again. */
const trustMs = 1000;

/** Maximum cached tokens: 4,096 of 5 kB. */
const maxTokens = 4096;

/** A token with a verified signature. */
interface KnownToken {
  readonly claims: TokenClaims;
  holder: TokenHolder | undefined;
  /** Time of the lookup, in milliseconds of a monotonic clock. */
  checkedAtMs: number;
  /** The lookup in progress, which concurrent requests share. */
  refreshing: Promise<TokenHolder> | undefined;
}

export interface HolderDeps {
  readonly issuer: Issuer;
  readonly accounts: Accounts;
  readonly now: () => Date;
  readonly monotonicMs?: () => number;
}

/**
 * @throws ConnectError UNAUTHENTICATED if the token is not valid; another error if that cannot be determined
 *   now
 */
export type FindTokenHolder = (token: string) => TokenHolder | Promise<TokenHolder>;

/**
 * Creates the lookup. A revoked token, a removed user and a retired key take effect within `trustMs`. Only
 * tokens with a valid signature are cached, so that callers cannot fill the memory with invalid ones.
 */
export function createHolders({
  issuer,
  accounts,
  now,
  monotonicMs = () => performance.now(),
}: HolderDeps): FindTokenHolder {
  const known = new LRUCache<string, KnownToken>({ max: maxTokens });
  const refresh = (token: string, entry: KnownToken): Promise<TokenHolder> => {
    entry.refreshing ??= lookUp(token, entry).finally(() => {
      entry.refreshing = undefined;
    });
    return entry.refreshing;
  };
  const lookUp = async (token: string, entry: KnownToken): Promise<TokenHolder> => {
    const { claims } = entry;
    const startedMs = monotonicMs();
    const holder = await findHolder(accounts, claims);
    if (holder === undefined) {
      known.delete(token);
      throw refuse("TOKEN_REVOKED", "the token is no longer accepted", { subject: claims.subject });
    }
    entry.holder = holder;
    entry.checkedAtMs = startedMs;
    return holder;
  };
  const verify = async (token: string): Promise<TokenHolder> => {
    const check = await issuer.check(token);
    if (!check.ok) throw refuse("TOKEN_MALFORMED", `the token is refused: ${check.message}`);
    // An open server issues tokens for any name to anyone, so they do not identify the caller.
    const isOwn = check.access !== undefined && check.access.clientId === check.subject;
    if (accounts.users === undefined && !isOwn)
      throw refuse(
        "TOKEN_MALFORMED",
        "the server runs with --auth open, where a log-in proves nothing; use a client's token",
      );
    const entry = { claims: check, holder: undefined, checkedAtMs: 0, refreshing: undefined };
    const holder = await refresh(token, entry);
    known.set(token, entry);
    return holder;
  };
  return (token) => {
    const entry = known.get(token);
    if (entry?.holder === undefined) return verify(token);
    if (entry.claims.expiresAt.getTime() <= now().getTime()) {
      known.delete(token);
      throw refuse("TOKEN_EXPIRED", "the token has expired");
    }
    if (!issuer.acceptsKey(entry.claims.keyId)) {
      known.delete(token);
      throw refuse("TOKEN_KEY_UNKNOWN", "the key that signed the token is no longer accepted");
    }
    return monotonicMs() - entry.checkedAtMs < trustMs ? entry.holder : refresh(token, entry);
  };
}

/** Whether an error rejects the token. Any other error says nothing about the token. */
export function refusesToken(error: unknown): error is ConnectError {
  return error instanceof Error && "code" in error && error.code === Code.Unauthenticated;
}
