/** Opens the identity of a server: its token issuer, its users and their passwords. */
import type { Logger } from "pino";
import type { CryptoProvider } from "../crypto/provider.ts";
import { listNetworks } from "../http/networks.ts";
import type { Store } from "../store/store.ts";
import {
  type Accounts,
  authenticate,
  nameRevocationGroup,
  requireNotRevoked,
  type TokenHolder,
} from "./authenticate.ts";
import { type CheckClient, createClientCheck } from "./client-secrets.ts";
import { createClientStore } from "./clients.ts";
import { type AccessTokenOptions, type Issuer, openIssuer } from "./issuer.ts";
import { createIssuerStore } from "./issuer-store.ts";
import { createKnownNetworks } from "./known-networks.ts";
import { type LogIn, logInAnyone, logInUsers } from "./log-in.ts";
import { createLogInRecords, type LogInRecords } from "./log-in-records.ts";
import { createLoginThrottle } from "./login-throttle.ts";
import type { PasswordLane } from "./password-lane.ts";
import { createRevocations } from "./revocations.ts";
import { createUserStore, type UserStore } from "./users.ts";

/** The options of an identity. */
export interface IdentityOptions {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly now: () => Date;
  /** "open" issues a token for any name to any caller. */
  readonly mode: "open" | "token";
  readonly passwords: PasswordLane;
  readonly accessTokens: AccessTokenOptions;
  /** The most failed log-ins per minute for one name, or from one network. */
  readonly maxFailedLogins: number;
  /** Receives a line for each log-in, within limits. */
  readonly logger?: Logger;
}

/** Identifies the callers of a server. */
export interface Identity {
  readonly issuer: Issuer;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly logIn: LogIn;
  /** The accounts that tokens are checked against. */
  readonly accounts: Accounts;
  /** Records the log-ins of clients. */
  readonly logInRecords: LogInRecords;
  /** Checks the name and the secret of a client of OAuth 2. */
  readonly checkClient: CheckClient;
  /** The claim `iss` of access tokens, and the audience of those for this server; undefined if there are none. */
  readonly issuerUrl: string | undefined;
  /** Authenticates a caller by the `authorization` header. The result also tells how to check for a revocation. */
  authenticate(authorization: string | null): Promise<AuthenticatedCaller>;
  /** Records the remaining counts. The store must still be open. */
  close(): Promise<void>;
}

/** A caller with a valid token. */
export interface AuthenticatedCaller extends TokenHolder {
  readonly revocation: { readonly group: string; readonly check: () => Promise<void> };
}

/** Opens the issuer with its keys, or creates the keys in a new store. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { provider, store, now, mode, passwords, maxFailedLogins, accessTokens, logger } = options;
  const { issuerUrl } = accessTokens;
  const issuer = await openIssuer({ provider, store: createIssuerStore(store), now }, accessTokens);
  const clients = createClientStore(store);
  const users = mode === "token" ? createUserStore(store) : undefined;
  const logInRecords = createLogInRecords(store, { ...(logger && { logger }) });
  const accounts = { users, clients, revocations: createRevocations(store) };
  return {
    issuer,
    users,
    logIn: users
      ? logInUsers({
          issuer,
          users,
          throttle: createLoginThrottle(maxFailedLogins),
          known: createKnownNetworks(),
          records: logInRecords,
          verifyPassword: passwords.verify,
          listNetworks,
        })
      : logInAnyone(issuer),
    accounts,
    logInRecords,
    checkClient: createClientCheck(clients),
    issuerUrl,
    async authenticate(authorization) {
      const holder = await authenticate(issuer, accounts, authorization, issuerUrl);
      const check = () => requireNotRevoked(issuer, accounts, holder);
      return { ...holder, revocation: { group: nameRevocationGroup(holder), check } };
    },
    close: async () => {
      issuer.close();
      await logInRecords.close();
    },
  };
}
