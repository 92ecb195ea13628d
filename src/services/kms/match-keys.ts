/** Opens secret halves of keys and checks that they match their public keys. Threads share the work. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Algorithm } from "../../crypto/algorithms.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { DatabaseLocation } from "../../database/database.ts";
import { findThread } from "../../program-files.ts";
import { nameSecret } from "../../records/table-declaration.ts";
import type { MasterKeySource } from "../../secrets/master-key.ts";
import { importSealedKey } from "../../secrets/sealed-keys.ts";
import { keyTable } from "./tables.ts";

export interface PublicHalf {
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly publicKey: Uint8Array;
}

/**
 * What the store contains as a key's secret half. CLOSED: bytes that cannot be opened. OTHER: another key's
 * half.
 */
export type SecretHalf = "MISSING" | "CLOSED" | "OTHER" | "FITS";

/** Checks the secret half of each key. */
export type MatchKeys = (keys: readonly PublicHalf[]) => Promise<readonly SecretHalf[]>;

/** Input and messages of a thread. */
export interface MatchThreadInput {
  readonly provider: CryptoProvider["name"];
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}
export type MatchReply = { readonly halves: readonly SecretHalf[] } | { readonly failure: string };

/**
 * Checks in this thread.
 *
 * @param readSecrets as in `Store`
 */
export async function matchKeys(
  provider: CryptoProvider,
  readSecrets: (identities: readonly string[]) => Promise<ReadonlyMap<string, Uint8Array | undefined>>,
  keys: readonly PublicHalf[],
): Promise<readonly SecretHalf[]> {
  const secrets = await readSecrets(keys.map(({ keyId }) => nameSecret(keyTable, { keyId })));
  const halves: SecretHalf[] = [];
  for (const { keyId, algorithm, publicKey } of keys) {
    const identity = nameSecret(keyTable, { keyId });
    const secret = secrets.get(identity);
    if (secret === undefined) halves.push(secrets.has(identity) ? "CLOSED" : "MISSING");
    else halves.push(await matchKey(provider, algorithm, secret, publicKey));
  }
  return halves;
}

async function matchKey(
  provider: CryptoProvider,
  algorithm: Algorithm,
  secret: Uint8Array,
  publicKey: Uint8Array,
): Promise<SecretHalf> {
  try {
    (await importSealedKey(provider, algorithm, secret, publicKey)).erase();
    return "FITS";
  } catch (error) {
    if (!(error instanceof CryptoError) || error.code === "CLOSED") throw error;
    return "OTHER";
  }
}

/** Starts one thread per processor. Each reads the database itself, and may block on it. */
export function startMatchThreads(input: MatchThreadInput) {
  const workers = Array.from({ length: availableParallelism() }, () => startThread(input));
  let next = 0;
  return {
    count: workers.length,
    match(keys: readonly PublicHalf[]) {
      const worker = workers[next++ % workers.length];
      if (worker === undefined) throw new Error("no thread is running");
      return worker.match(keys);
    },
    close: () => Promise.all(workers.map(({ close }) => close())),
  };
}

/** A thread answers its requests in order. */
function startThread(workerData: MatchThreadInput) {
  const worker = new Worker(findThread("services/kms/match-thread.ts"), {
    name: "key match",
    workerData,
    execArgv: [],
  });
  const waiting: PromiseWithResolvers<readonly SecretHalf[]>[] = [];
  const end = (error: Error): void => {
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on("message", (reply: MatchReply) => {
    if ("halves" in reply) waiting.shift()?.resolve(reply.halves);
    else waiting.shift()?.reject(new Error(reply.failure));
  });
  worker.on("error", end);
  worker.on("exit", (code) => end(new Error(`a key check thread ended with code ${code}`)));
  return {
    match(keys: readonly PublicHalf[]): Promise<readonly SecretHalf[]> {
      const answer = Promise.withResolvers<readonly SecretHalf[]>();
      waiting.push(answer);
      worker.postMessage(keys);
      return answer.promise;
    },
    close: () => worker.terminate(),
  };
}
