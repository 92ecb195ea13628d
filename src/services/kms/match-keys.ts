/** Opens secret halves of keys and checks that they fit their public keys. Threads share the work. */
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

/** The public half of a key. */
export interface PublicHalf {
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly publicKey: Uint8Array;
}

/** What the store has as the secret half of a key. CLOSED: bytes that do not open. OTHER: the half of another key. */
export type SecretHalf = "MISSING" | "CLOSED" | "OTHER" | "FITS";

/** Looks for the secret half of each key. */
export type MatchKeys = (keys: readonly PublicHalf[]) => Promise<readonly SecretHalf[]>;

/** The data of a thread, and its messages. */
export interface MatchThreadInput {
  readonly provider: CryptoProvider["name"];
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}
export type MatchRequest = readonly PublicHalf[];
export type MatchReply = { readonly halves: readonly SecretHalf[] } | { readonly failure: string };

/** Looks in this thread. @param readSecrets as in `Store` */
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

/** Threads that look for secret halves. Each reads the database itself, and may wait for it. */
export interface MatchThreads {
  readonly count: number;
  readonly match: MatchKeys;
  close(): Promise<void>;
}

/** Starts a thread for each processor. */
export function startMatchThreads(input: MatchThreadInput, count = availableParallelism()): MatchThreads {
  const workers = Array.from({ length: count }, () => startThread(input));
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
  const waiting: PromiseWithResolvers<readonly SecretHalf[]>[] = [];
  const end = (error: Error): void => {
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on("message", (reply: MatchReply) => {
    if ("halves" in reply) waiting.shift()?.resolve(reply.halves);
    else waiting.shift()?.reject(new Error(reply.failure));
  });
  worker.on("error", end);
  worker.on("exit", (code) => end(new Error(`a thread that checks keys ended with code ${code}`)));
  return {
    match(keys: MatchRequest): Promise<readonly SecretHalf[]> {
      const answer = Promise.withResolvers<readonly SecretHalf[]>();
      waiting.push(answer);
      worker.postMessage(keys);
      return answer.promise;
    },
    close: () => worker.terminate(),
  };
}
