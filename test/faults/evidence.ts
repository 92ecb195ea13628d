/** What callers of the key service may hold it to: what was acknowledged, and what was asked for at most. */
import { ConnectError } from "@connectrpc/connect";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { describeRefusal } from "../support/refusal.ts";
import type { KmsClient } from "./kms-server.ts";

/** Whether something was done: nobody asked for it, somebody did and has no answer, or it was acknowledged. */
export type Done = "no" | "unknown" | "yes";

/** How often something was done: at least as often as it was acknowledged, at most as often as it was asked for. */
export interface Count {
  least: number;
  most: number;
}

/** What is known of a key that was acknowledged. */
export interface KeyEvidence {
  readonly keyId: string;
  readonly alias: string;
  readonly algorithm: string;
  readonly publicKey: Uint8Array;
  readonly signatures: Count;
  readonly verifications: Count;
  rotated: Done;
  destroyed: Done;
}

/** A key that was asked for, by creation or by rotation. */
export interface KeyInput {
  /** No other order has it. */
  readonly alias: string;
  /** Asks for it, or asks again. */
  readonly send: (kms: KmsClient) => Promise<KeyRecord>;
  /** Whether asking again gives the same key. */
  readonly isRepeatable: boolean;
  /** The key that it came to; undefined if that is not known. */
  keyId: string | undefined;
}

/** A signature that was acknowledged. */
export interface SignatureEvidence {
  readonly keyId: string;
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
}

/** A call that failed, other than a use of a key that somebody retires meanwhile. */
export interface Failure {
  readonly rpc: string;
  readonly code: string;
  readonly reason: string | undefined;
  /** As performance.now() has it. */
  readonly startedMs: number;
  readonly endedMs: number;
}

/** All that the callers of one store know. */
export interface Evidence {
  /** By keyId. */
  readonly keys: Map<string, KeyEvidence>;
  /** By alias. */
  readonly orders: Map<string, KeyInput>;
  /** The newest of them. */
  readonly signatures: SignatureEvidence[];
  readonly failures: Failure[];
  /** What was answered and cannot be true. */
  readonly contradictions: string[];
}

/** Begins with a store that nobody has used. */
export function createEvidence(): Evidence {
  return {
    keys: new Map(),
    orders: new Map(),
    signatures: [],
    failures: [],
    contradictions: [],
  };
}

/** Notes that a key was acknowledged. */
export function noteKey({ keys, orders }: Evidence, record: KeyRecord): void {
  const { keyId, alias, algorithm, publicKey = new Uint8Array() } = record;
  const order = orders.get(alias);
  if (order) order.keyId = keyId;
  if (keys.has(keyId)) return;
  keys.set(keyId, {
    keyId,
    alias,
    algorithm,
    publicKey,
    signatures: { least: 0, most: 0 },
    verifications: { least: 0, most: 0 },
    rotated: "no",
    destroyed: "no",
  });
}

/** Makes calls and keeps what they prove. None of them throws; each tells whether it was answered. */
export interface Witness {
  create(order: { alias: string; algorithm: string; idempotencyKey?: string }): Promise<boolean>;
  /** Only for a key that nobody asked to rotate before. */
  rotate(key: KeyEvidence, idempotencyKey?: string): Promise<boolean>;
  /** Only for a key that nobody asked to destroy before. */
  destroy(key: KeyEvidence): Promise<boolean>;
  sign(key: KeyEvidence, data: Uint8Array): Promise<boolean>;
  batchSign(key: KeyEvidence, data: readonly Uint8Array[]): Promise<boolean>;
  verify(signed: SignatureEvidence): Promise<boolean>;
}

/** What became of a call. */
interface Outcome<Answer> {
  readonly answer?: Answer;
  /** Whether it is certain that it changed nothing. */
  readonly isRefused: boolean;
  readonly isAnswered: boolean;
}

/** Signatures to keep for verification. */
const keptSignatures = 50;

/** Makes a witness; there may be several for one store. */
export function createWitness(evidence: Evidence, kms: KmsClient): Witness {
  const { keys, orders, signatures, failures, contradictions } = evidence;

  /** @param mayBeRetired whether somebody else asked for a change that refuses this call. */
  const attempt = async <Answer>(
    rpc: string,
    mayBeRetired: () => boolean,
    call: () => Promise<Answer>,
  ): Promise<Outcome<Answer>> => {
    const startedMs = performance.now();
    try {
      return { answer: await call(), isRefused: false, isAnswered: true };
    } catch (thrown) {
      const { code, reason } = describeRefusal(ConnectError.from(thrown));
      if (reason === "KEY_STATE_INVALID" && mayBeRetired()) return { isRefused: true, isAnswered: true };
      failures.push({ rpc, code, reason, startedMs, endedMs: performance.now() });
      return { isRefused: reason === "STORE_FULL", isAnswered: false };
    }
  };

  const use = async <Answer>(
    rpc: string,
    key: KeyEvidence,
    { count, uses }: { count: Count; uses: number },
    call: () => Promise<Answer>,
  ): Promise<Outcome<Answer>> => {
    count.most += uses;
    const isRetired = () => key.rotated !== "no" || key.destroyed !== "no";
    const outcome = await attempt(rpc, isRetired, call);
    if (outcome.answer !== undefined) count.least += uses;
    if (outcome.isRefused) count.most -= uses;
    return outcome;
  };

  const keep = (signed: SignatureEvidence): void => {
    signatures.push(signed);
    if (signatures.length > keptSignatures) signatures.shift();
  };

  return {
    async create({ alias, algorithm, idempotencyKey }) {
      const send = async (client: KmsClient) =>
        present((await client.createKey({ alias, algorithm }, headersOf(idempotencyKey))).result);
      orders.set(alias, { alias, send, isRepeatable: idempotencyKey !== undefined, keyId: undefined });
      const outcome = await attempt(
        "CreateKey",
        () => false,
        () => send(kms),
      );
      if (outcome.answer) noteKey(evidence, outcome.answer);
      if (outcome.isRefused) orders.delete(alias);
      return outcome.isAnswered;
    },

    async rotate(key, idempotencyKey) {
      const { keyId } = key;
      const alias = `${key.alias}-rotated`;
      const send = async (client: KmsClient) =>
        present((await client.rotateKey({ keyId }, headersOf(idempotencyKey))).newKey);
      orders.set(alias, { alias, send, isRepeatable: idempotencyKey !== undefined, keyId: undefined });
      key.rotated = "unknown";
      const outcome = await attempt(
        "RotateKey",
        () => key.destroyed !== "no",
        () => send(kms),
      );
      if (outcome.answer) {
        noteKey(evidence, outcome.answer);
        key.rotated = "yes";
      }
      if (outcome.isRefused) {
        orders.delete(alias);
        key.rotated = "no";
      }
      return outcome.isAnswered;
    },

    async destroy(key) {
      const { keyId } = key;
      key.destroyed = "unknown";
      const outcome = await attempt(
        "DestroyKey",
        () => false,
        () => kms.destroyKey({ keyId }),
      );
      if (outcome.answer) key.destroyed = "yes";
      if (outcome.isRefused) key.destroyed = "no";
      return outcome.isAnswered;
    },

    async sign(key, data) {
      const { keyId } = key;
      const uses = { count: key.signatures, uses: 1 };
      const { answer, isAnswered } = await use("Sign", key, uses, () => kms.sign({ keyId, data }));
      if (answer) keep({ keyId, data, signature: present(answer.result).signature });
      return isAnswered;
    },

    async batchSign(key, data) {
      const { keyId } = key;
      const uses = { count: key.signatures, uses: data.length };
      const { answer, isAnswered } = await use("BatchSign", key, uses, () =>
        kms.batchSign({ keyId, data: [...data] }),
      );
      if (answer && answer.results.length !== data.length)
        contradictions.push(`BatchSign: ${answer.results.length} results for ${data.length} messages`);
      for (const [i, message] of data.entries())
        if (answer) keep({ keyId, data: message, signature: present(answer.results[i]?.signature) });
      return isAnswered;
    },

    async verify({ keyId, data, signature }) {
      const key = present(keys.get(keyId));
      const uses = { count: key.verifications, uses: 1 };
      const { answer, isAnswered } = await use("Verify", key, uses, () =>
        kms.verify({ keyId, data, signature }),
      );
      if (answer && answer.result?.valid !== true)
        contradictions.push(`Verify: a signature of ${keyId} does not verify`);
      return isAnswered;
    },
  };
}

/** What an answer must have. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer lacks something");
  return value;
}

function headersOf(idempotencyKey: string | undefined) {
  return idempotencyKey === undefined ? {} : { headers: { "idempotency-key": idempotencyKey } };
}
