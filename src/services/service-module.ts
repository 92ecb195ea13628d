/** The interface between a service package and the server. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { Example } from "../calls/example.ts";
import type { Config } from "../config.ts";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Identity } from "../identity/open-identity.ts";
import type { Store } from "../store/store.ts";
import type { KeyDomain } from "./kms/domain.ts";
import type { LogVerification } from "./verify-logs.ts";

/** What the server gives to a package when it opens the package's services. */
export interface ModuleDeps extends Omit<Identity, "authenticate" | "close"> {
  readonly provider: CryptoProvider;
  readonly store: Store;
  /** Scopes that this server's calls require. */
  readonly scopes: readonly string[];
  readonly challengeLimits: { readonly perDevice: number; readonly perClient: number };
  /** PEM files of the certificate chains that this server presents; none if it does not terminate TLS. */
  readonly certificateFiles: readonly string[];
  /** Reads an extension's setting. */
  readonly valueFor: Config["valueFor"];
  /** Server-held keys, which several services share. */
  readonly keyDomain: KeyDomain;
  readonly verifyAudit: LogVerification["verifyAudit"];
  readonly metrics: LogMetrics & ServiceMetrics;
  readonly now: () => Date;
}

/** Metrics of verifiable logs. */
export interface LogMetrics {
  /**
   * Records a publication.
   *
   * @param seconds how long it took to sign a new checkpoint; undefined if nothing was to be signed
   */
  logPublished(log: string, entries: number, published: number, seconds: number | undefined): void;
  logCosigned(log: string): void;
}

/** Metrics that a package adds. */
export interface ServiceMetrics {
  /**
   * Adds a gauge that is read at each scrape.
   *
   * @param gauge.read returns a bounded number of series
   */
  watchGauge(gauge: {
    readonly name: string;
    readonly help: string;
    readonly labelNames: readonly string[];
    readonly read: () => Promise<
      readonly { readonly labels: Record<string, string>; readonly value: number }[]
    >;
  }): void;
  /**
   * Adds a counter, which starts at 0.
   *
   * @returns a function that counts
   */
  addCounter(name: string, help: string): () => void;
}

/** A package's services, and how to close what they hold open. */
export interface OpenModule {
  readonly services: readonly ServiceImplSpec[];
  close?(): Promise<void>;
}

export type OpenServices = (deps: ModuleDeps) => OpenModule | Promise<OpenModule>;

/** What a package's module.ts exports. */
export interface ServiceModule {
  readonly openServices: OpenServices;
  /** Example requests for each call; an example follows the examples whose answers it uses. */
  readonly examples: readonly Example[];
}
