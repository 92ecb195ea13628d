/** How a package of services presents itself to the server. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Accounts } from "../identity/authenticate.ts";
import type { CheckClient } from "../identity/client-secrets.ts";
import type { Issuer } from "../identity/issuer.ts";
import type { LogIn } from "../identity/log-in.ts";
import type { UserStore } from "../identity/users.ts";
import type { Example } from "../protocol/example.ts";
import type { WireCodecs } from "../protocol/wire-codec.ts";
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
  /** Checks the name and the secret of a client of OAuth 2. */
  readonly checkClient: CheckClient;
  /** The claim `iss` of access tokens; undefined if the server issues none. */
  readonly issuerUrl: string | undefined;
  /** The scopes that the calls of this server need. */
  readonly scopes: readonly string[];
  readonly challengeLimits: { readonly perDevice: number; readonly perClient: number };
  readonly now: () => Date;
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
