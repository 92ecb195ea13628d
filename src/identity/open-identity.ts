/** Opens a server's identity: its token issuer, its users and their passwords. */
import type { Logger } from "pino";
import type { CryptoProvider } from "../crypto/provider.ts";
import { listNetworks } from "../http/networks.ts";
import type { Store } from "../store/store.ts";
import {
  type Accounts,
  authenticate,
  type FindDeviceOwner,
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

export interface IdentityOptions {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly now: () => Date;
  /** "open" issues a token for any name to any caller. */
  readonly mode: "open" | "token";
  readonly passwords: PasswordLane;
  readonly accessTokens: AccessTokenOptions;
  readonly findDeviceOwner: FindDeviceOwner;
  /** Maximum failed log-ins per minute for one name, or from one network. */
  readonly maxFailedLogins: number;
  /** Receives a line for each log-in, within limits. */
  readonly logger?: Logger;
}

/** Identifies a server's callers. */
export interface Identity {
  readonly issuer: Issuer;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly logIn: LogIn;
  /** Accounts against which tokens are checked. */
  readonly accounts: Accounts;
  /** Records client log-ins. */
  readonly logInRecords: LogInRecords;
  /** Checks the name and secret of an OAuth 2 client. */
  readonly checkClient: CheckClient;
  /**
   * The `iss` claim of access tokens, and their audience for this server; undefined if the server issues
   * none.
   */
  readonly issuerUrl: string | undefined;
  /**
   * Authenticates a caller by its `authorization` header. The result includes a check for later revocation.
   */
  authenticate(authorization: string | null): Promise<AuthenticatedCaller>;
  /** Records the remaining counts. The store must still be open. */
  close(): Promise<void>;
}

export interface AuthenticatedCaller extends TokenHolder {
  readonly revocation: { readonly group: string; readonly check: () => Promise<void> };
}

/** Opens the issuer with its keys, or creates the keys in a new store. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { provider, store, now, mode, passwords, maxFailedLogins, accessTokens, findDeviceOwner, logger } =
    options;
  const { issuerUrl } = accessTokens;
  const issuer = await openIssuer({ provider, store: createIssuerStore(store), now }, accessTokens);
  const clients = createClientStore(store);
  const users = mode === "token" ? createUserStore(store) : undefined;
  const logInRecords = createLogInRecords(store, { ...(logger && { logger }) });
  const accounts = { users, clients, revocations: createRevocations(store), findDeviceOwner };
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
      await issuer.close();
      await logInRecords.close();
    },
  };
}
