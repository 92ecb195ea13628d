/** Opens the identity of a server: its token issuer, its users and their passwords. */
import type { CryptoProvider } from "../crypto/provider.ts";
import { listNetworks } from "../protocol/networks.ts";
import type { SharedMemory } from "../shared-memory/shared-memory.ts";
import type { Store } from "../store/store.ts";
import { authenticate, nameRevocationGroup, requireNotRevoked, type TokenHolder } from "./authenticate.ts";
import { type Issuer, openIssuer } from "./issuer.ts";
import { createIssuerStore } from "./issuer-store.ts";
import { createKnownNetworks } from "./known-networks.ts";
import { type LogIn, logInAnyone, logInUsers } from "./log-in.ts";
import { createLoginThrottle } from "./login-throttle.ts";
import type { PasswordLane } from "./password-lane.ts";
import { createUserStore, type UserStore } from "./users.ts";

/** The options of an identity. */
export interface IdentityOptions {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly now: () => Date;
  /** "open" issues a token for any name to any caller. */
  readonly mode: "open" | "token";
  readonly passwords: PasswordLane;
  /** The most failed log-ins per minute for one name, or from one network. */
  readonly maxFailedLogins: number;
  /** Remembers failed log-ins, and the networks of users. */
  readonly memory: Pick<SharedMemory, "logIns" | "knownNetworks">;
}

/** Identifies the callers of a server. */
export interface Identity {
  readonly issuer: Issuer;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly logIn: LogIn;
  /** Authenticates a caller by the `authorization` header. The result also tells how to check for a revocation. */
  authenticate(authorization: string | null): Promise<AuthenticatedCaller>;
  close(): void;
}

/** A caller with a valid token. */
export interface AuthenticatedCaller extends TokenHolder {
  readonly revocation: { readonly group: string; readonly check: () => Promise<void> };
}

/** Opens the issuer with its key, or creates the key in a new store. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { provider, store, now, mode, passwords, maxFailedLogins, memory } = options;
  const issuer = await openIssuer({ provider, store: createIssuerStore(store), now });
  const users = mode === "token" ? createUserStore(store) : undefined;
  const throttle = createLoginThrottle(maxFailedLogins, memory.logIns);
  const known = createKnownNetworks(memory.knownNetworks);
  const logIn = users
    ? logInUsers({ issuer, users, throttle, known, verifyPassword: passwords.verify, listNetworks })
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
