/** How a package of services presents itself to the server. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { Example } from "../calls/example.ts";
import type { WireCodecs } from "../calls/wire-codec.ts";
import type { Config } from "../config.ts";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Identity } from "../identity/open-identity.ts";
import type { Store } from "../store/store.ts";
import type { KeyDomain } from "./kms/domain.ts";
import type { LogVerification } from "./verify-logs.ts";

/** The dependencies of services. */
export interface ModuleDeps extends Omit<Identity, "authenticate" | "close"> {
  readonly provider: CryptoProvider;
  readonly store: Store;
  /** The scopes that the calls of this server need. */
  readonly scopes: readonly string[];
  readonly challengeLimits: { readonly perDevice: number; readonly perClient: number };
  /** Reads a setting of an extension. */
  readonly valueFor: Config["valueFor"];
  /** The keys of the server, which several services use. */
  readonly keyDomain: KeyDomain;
  readonly verifyAudit: LogVerification["verifyAudit"];
  readonly metrics: LogMetrics;
  readonly now: () => Date;
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

/** The exports of the module.ts of a package. */
export interface ServiceModule {
  readonly openServices: OpenServices;
  /** Example requests for each call; each one comes after those whose answers it needs. */
  readonly examples: readonly Example[];
}
