/** How a package of services presents itself to the server. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Accounts } from "../identity/authenticate.ts";
import type { CheckClient } from "../identity/client-secrets.ts";
import type { Issuer } from "../identity/issuer.ts";
import type { LogIn } from "../identity/log-in.ts";
import type { LogInRecords } from "../identity/log-in-records.ts";
import type { UserStore } from "../identity/users.ts";
import type { Example } from "../protocol/example.ts";
import type { WireCodecs } from "../protocol/wire-codec.ts";
import type { VerifierKey } from "../signed-notes/verifier-keys.ts";
import type { Store } from "../store/store.ts";

/** What services need. */
export interface ModuleDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly issuer: Issuer;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly logIn: LogIn;
  /** Whom tokens are checked against. */
  readonly accounts: Accounts;
  /** Records the log-ins of clients. */
  readonly logInRecords: LogInRecords;
  /** Checks the name and the secret of a client of OAuth 2. */
  readonly checkClient: CheckClient;
  /** The claim `iss` of access tokens; undefined if the server issues none. */
  readonly issuerUrl: string | undefined;
  /** The scopes that the calls of this server need. */
  readonly scopes: readonly string[];
  readonly challengeLimits: { readonly perDevice: number; readonly perClient: number };
  /** How verifiable logs present themselves. */
  readonly logs: LogOptions;
  readonly now: () => Date;
}

/** The settings of verifiable logs. */
export interface LogOptions {
  /** The origins of logs begin with this; empty for a name made from the key of the store. */
  readonly origin: string;
  /** Whether anyone may read the audit entries themselves. */
  readonly areEntriesPublic: boolean;
  readonly witnesses: readonly VerifierKey[];
  readonly metrics: LogMetrics;
}

/** Observes verifiable logs. */
export interface LogMetrics {
  /** @param seconds how long it took to sign a new checkpoint; undefined if there was nothing to sign */
  logPublished(log: string, entries: number, published: number, seconds: number | undefined): void;
  logCosigned(log: string): void;
}

/** A package's services, and how to close what they hold open. */
export interface OpenModule {
  readonly services: readonly ServiceImplSpec[];
  /** Faster codecs of some of their RPCs. */
  readonly codecs?: WireCodecs;
  close?(): Promise<void>;
}

/** Opens the services of a package. */
export type OpenServices = (deps: ModuleDeps) => OpenModule | Promise<OpenModule>;

/** What the module.ts of a package exports. */
export interface ServiceModule {
  readonly openServices: OpenServices;
  /** Example requests for each call; each one comes after those whose answers it needs. */
  readonly examples: readonly Example[];
}
