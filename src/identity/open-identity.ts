/** Opens what knows the callers of a server: its token issuer, its users, and their passwords. */
import type { CryptoProvider } from "../crypto/provider.ts";
import { listNetworks } from "../protocol/networks.ts";
import type { Store } from "../store/store.ts";
import { authenticate, nameRevocationGroup, requireNotRevoked, type TokenHolder } from "./authenticate.ts";
import { type Issuer, openIssuer } from "./issuer.ts";
import { createIssuerStore } from "./issuer-store.ts";
import { type LogIn, logInAnyone, logInUsers } from "./log-in.ts";
import { createLoginThrottle } from "./login-throttle.ts";
import type { PasswordLane } from "./password-lane.ts";
import { createUserStore, type UserStore } from "./users.ts";

/** What callers are known by. */
export interface IdentityOptions {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly now: () => Date;
  /** "open" gives a token of any name to anyone. */
  readonly mode: "open" | "token";
  readonly passwords: PasswordLane;
  /** Log-ins of one name, or from one network, that may fail in a minute. */
  readonly maxFailedLogins: number;
}

/** Knows the callers of a server. */
export interface Identity {
  readonly issuer: Issuer;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly logIn: LogIn;
  /** Authenticates a caller by the `authorization` header, and says how to learn that their token is revoked. */
  authenticate(authorization: string | null): Promise<AuthenticatedCaller>;
  close(): void;
}

/** A caller with a valid token. */
export interface AuthenticatedCaller extends TokenHolder {
  readonly revocation: { readonly group: string; readonly check: () => Promise<void> };
}

/** Opens the issuer with its key, which it makes in a new store. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { provider, store, now, mode, passwords, maxFailedLogins } = options;
  const issuer = await openIssuer({ provider, store: createIssuerStore(store), now });
  const users = mode === "token" ? createUserStore(store) : undefined;
  const attempts = createLoginThrottle(maxFailedLogins);
  const logIn = users
    ? logInUsers({ issuer, users, attempts, verifyPassword: passwords.verify, listNetworks })
    : logInAnyone(issuer);
  return {
    issuer,
    users,
    logIn,
    async authenticate(authorization) {
      const holder = await authenticate(issuer, authorization, users);
      const check = () => requireNotRevoked(issuer, holder, users);
      return { ...holder, revocation: { group: nameRevocationGroup(holder), check } };
    },
    close: () => issuer.close(),
  };
}
