/** Checks that secret keys are those of their public keys. That computes each key pair again, so threads share the work. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Algorithm } from "../../crypto/algorithms.ts";
import { wipe } from "../../crypto/bytes.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { findThread } from "../../program-files.ts";
import { importSealedKey } from "../../secrets/sealed-keys.ts";

/** The halves of a key. */
export interface KeyHalves {
  readonly algorithm: Algorithm;
  /** The bytes that were sealed; wiped after use. */
  readonly secret: Uint8Array;
  readonly publicKey: Uint8Array;
}

/** Tells for each key whether its halves fit. */
export type MatchKeys = (keys: readonly KeyHalves[]) => Promise<readonly boolean[]>;

/** The data of a thread, and its messages. */
export interface MatchThreadInput {
  readonly provider: CryptoProvider["name"];
}
export type MatchRequest = readonly KeyHalves[];
export type MatchReply = { readonly matches: readonly boolean[] } | { readonly failure: string };

/** Checks keys in this thread. */
export async function matchKeys(
  provider: CryptoProvider,
  keys: readonly KeyHalves[],
): Promise<readonly boolean[]> {
  const matches: boolean[] = [];
  for (const { algorithm, secret, publicKey } of keys)
    try {
      (await importSealedKey(provider, algorithm, secret, publicKey)).erase();
      matches.push(true);
    } catch (error) {
      if (!(error instanceof CryptoError) || error.code === "CLOSED") throw error;
      matches.push(false);
    }
  return matches;
}

/** Threads that check keys. */
export interface MatchThreads {
  readonly count: number;
  readonly match: MatchKeys;
  close(): Promise<void>;
}

/** Starts a thread for each processor. */
export function startMatchThreads({ name }: CryptoProvider, count = availableParallelism()): MatchThreads {
  const workers = Array.from({ length: count }, () => startThread({ provider: name }));
  let next = 0;
  return {
    count,
    match(keys) {
      const worker = workers[next++ % count];
      if (worker === undefined) throw new Error("there is no thread");
      return worker.match(keys);
    },
    close: async () => void (await Promise.all(workers.map(({ close }) => close()))),
  };
}

/** A thread answers its requests in their order. */
function startThread(workerData: MatchThreadInput) {
  const worker = new Worker(findThread("services/kms/match-thread.ts"), {
    name: "key match",
    workerData,
    execArgv: [],
  });
  const waiting: PromiseWithResolvers<readonly boolean[]>[] = [];
  const end = (error: Error): void => {
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on("message", (reply: MatchReply) => {
    if ("matches" in reply) waiting.shift()?.resolve(reply.matches);
    else waiting.shift()?.reject(new Error(reply.failure));
  });
  worker.on("error", end);
  worker.on("exit", (code) => end(new Error(`a thread that checks keys ended with code ${code}`)));
  return {
    match(keys: readonly KeyHalves[]): Promise<readonly boolean[]> {
      const answer = Promise.withResolvers<readonly boolean[]>();
      waiting.push(answer);
      // Exact copies: posting a view would copy its whole buffer.
      const copies = keys.map(({ algorithm, secret, publicKey }) => ({
        algorithm,
        secret: Uint8Array.from(secret),
        publicKey: Uint8Array.from(publicKey),
      }));
      worker.postMessage(
        copies satisfies MatchRequest,
        copies.map(({ secret }) => secret.buffer),
      );
      for (const { secret } of keys) wipe(secret);
      return answer.promise;
    },
    close: () => worker.terminate(),
  };
}
