/** What callers of the key service know: what was acknowledged, and what was requested at most. */
import { ConnectError } from "@connectrpc/connect";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { present } from "../services/answers.ts";
import { describeRefusal } from "../support/refusal.ts";
import type { KmsClient } from "./kms-server.ts";

/** Whether an operation happened: never requested, requested without an answer, or acknowledged. */
export type Done = "no" | "unknown" | "yes";

/** How often an operation happened: at least as often as acknowledged, at most as often as requested. */
export interface Count {
  least: number;
  most: number;
}

/** What callers know about an acknowledged key. */
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

/** A requested key, from a creation or a rotation. */
export interface KeyInput {
  /** Unique for each order. */
  readonly alias: string;
  /** Requests the key, or repeats the request. */
  readonly send: (kms: KmsClient) => Promise<KeyRecord>;
  /** Whether a repeated request returns the same key. */
  readonly isRepeatable: boolean;
  /** The resulting key; undefined if unknown. */
  keyId: string | undefined;
}

/** An acknowledged signature. */
export interface SignatureEvidence {
  readonly keyId: string;
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
}

/** A failed call, except for uses of a key that another caller retires meanwhile. */
export interface Failure {
  readonly rpc: string;
  readonly code: string;
  readonly reason: string | undefined;
  /** In milliseconds of performance.now(). */
  readonly startedMs: number;
  readonly endedMs: number;
}

/** Everything that the callers of one store know. */
export interface Evidence {
  /** By keyId. */
  readonly keys: Map<string, KeyEvidence>;
  /** By alias. */
  readonly orders: Map<string, KeyInput>;
  /** The newest keys. */
  readonly signatures: SignatureEvidence[];
  readonly failures: Failure[];
  /** Answers that cannot be true. */
  readonly contradictions: string[];
}

/** Starts with an unused store. */
export function createEvidence(): Evidence {
  return { keys: new Map(), orders: new Map(), signatures: [], failures: [], contradictions: [] };
}

/** Lists the different kinds of failures. */
export function listKinds({ failures }: Pick<Evidence, "failures">): unknown[] {
  const kinds = new Set(failures.map(({ code, reason }) => JSON.stringify({ code, reason })));
  return [...kinds].map((kind) => JSON.parse(kind));
}

/** Records an acknowledged key. */
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

/** A key to create. */
interface NewKey {
  readonly alias: string;
  readonly algorithm: string;
  readonly idempotencyKey?: string | undefined;
}

/** Result of a call. */
interface Outcome<Answer> {
  readonly answer?: Answer;
  /** Whether the call certainly changed nothing. */
  readonly isRefused: boolean;
  readonly isAnswered: boolean;
}

/** Maximum number of signatures to keep for verification. */
const keptSignatures = 50;

export type Witness = ReturnType<typeof createWitness>;

/**
 * Makes calls and records what they prove. No method throws; each returns whether the call was answered. One store may
 * have several witnesses.
 */
export function createWitness(evidence: Evidence, kms: KmsClient) {
  const { keys, orders, signatures, failures, contradictions } = evidence;

  /** @param mayBeRetired whether another caller requested a change that makes the service reject this call */
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

  const order = async (
    rpc: string,
    { alias, idempotencyKey, of }: Omit<NewKey, "algorithm"> & { readonly of?: KeyEvidence },
    send: KeyInput["send"],
  ): Promise<Outcome<KeyRecord>> => {
    orders.set(alias, { alias, send, isRepeatable: idempotencyKey !== undefined, keyId: undefined });
    const isRetired = () => of !== undefined && of.destroyed !== "no";
    const outcome = await attempt(rpc, isRetired, () => send(kms));
    if (outcome.answer) noteKey(evidence, outcome.answer);
    if (outcome.isRefused) orders.delete(alias);
    return outcome;
  };

  const keep = (signed: SignatureEvidence): void => {
    signatures.push(signed);
    if (signatures.length > keptSignatures) signatures.shift();
  };

  return {
    async create({ alias, algorithm, idempotencyKey }: NewKey): Promise<boolean> {
      const { isAnswered } = await order("CreateKey", { alias, idempotencyKey }, async (client) =>
        present((await client.createKey({ alias, algorithm }, headersOf(idempotencyKey))).result),
      );
      return isAnswered;
    },

    /** Only for a key that nobody has asked to rotate. */
    async rotate(key: KeyEvidence, idempotencyKey?: string): Promise<boolean> {
      const { keyId } = key;
      key.rotated = "unknown";
      const ordered = { alias: `${key.alias}-rotated`, idempotencyKey, of: key };
      const { answer, isRefused, isAnswered } = await order("RotateKey", ordered, async (client) =>
        present((await client.rotateKey({ keyId }, headersOf(idempotencyKey))).newKey),
      );
      if (answer) key.rotated = "yes";
      if (isRefused) key.rotated = "no";
      return isAnswered;
    },

    /** Only for a key that nobody has asked to destroy. */
    async destroy(key: KeyEvidence): Promise<boolean> {
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

    async sign(key: KeyEvidence, data: Uint8Array): Promise<boolean> {
      const { keyId } = key;
      const uses = { count: key.signatures, uses: 1 };
      const { answer, isAnswered } = await use("Sign", key, uses, () => kms.sign({ keyId, data }));
      if (answer) keep({ keyId, data, signature: present(answer.result).signature });
      return isAnswered;
    },

    async batchSign(key: KeyEvidence, data: readonly Uint8Array[]): Promise<boolean> {
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

    async verify({ keyId, data, signature }: SignatureEvidence): Promise<boolean> {
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

function headersOf(idempotencyKey: string | undefined) {
  return idempotencyKey === undefined ? {} : { headers: { "idempotency-key": idempotencyKey } };
}
