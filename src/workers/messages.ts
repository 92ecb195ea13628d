/** The messages between the supervisor and the threads of its workers. */
import type { AddressInfo } from "node:net";
import type { MessagePort } from "node:worker_threads";
import type { Route } from "../app.ts";
import type { Config } from "../config.ts";
import type { Exposition, MetricsDump } from "../server/metrics.ts";
import type { SharedMemoryParts } from "../shared-memory/shared-memory.ts";

/** The input of a worker. */
export interface WorkerInput {
  /** Its number, from 0. The worker with number 0 is the home of services with state. */
  readonly worker: number;
  readonly config: Config;
  readonly memory: SharedMemoryParts;
  /** The port that all workers listen on. */
  readonly port: number;
}

/** Messages to a worker. */
export type ToWorker =
  /** Finish the running calls and end; the home waits for "finish". */
  | { readonly kind: "stop" }
  /** No other worker forwards calls any more. */
  | { readonly kind: "finish" }
  /** Throw an error that nothing catches. Tests send it. */
  | { readonly kind: "fail" }
  /** Block the event loop for ever. Tests send it. */
  | { readonly kind: "hang" }
  | { readonly kind: "dump metrics"; readonly id: number }
  /** The answer to "expose metrics". */
  | { readonly kind: "metrics"; readonly id: number; readonly exposition: Exposition }
  /** A port to another worker: of the home to one that forwards calls, or of that one to the home. */
  | { readonly kind: "bridge"; readonly port: MessagePort };

/** Messages of a worker. */
export type FromWorker =
  /** Its store is open. */
  | { readonly kind: "opened"; readonly routes: readonly Route[] }
  /** It listens. */
  | { readonly kind: "ready"; readonly address: AddressInfo; readonly cryptoVersion: string }
  /** It cannot start. */
  | { readonly kind: "failed"; readonly failure: StartFailure }
  /** The answer to "dump metrics", or with the ID 0 the last ones of a worker that failed. */
  | { readonly kind: "metrics dump"; readonly id: number; readonly dump: MetricsDump }
  | { readonly kind: "expose metrics"; readonly id: number };

/** Why a worker cannot start. */
export interface StartFailure {
  /** The code of a system error. */
  readonly code: string | undefined;
  readonly message: string;
  /** How the program ends if the message is a sentence for the operator; undefined for a bug. */
  readonly exitCode: number | undefined;
  readonly stack: string | undefined;
}
