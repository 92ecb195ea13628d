/** Callers who create, use, rotate and destroy keys concurrently. */
import { setTimeout } from "node:timers/promises";
import { createWitness, type Evidence, type KeyEvidence, type Witness } from "./evidence.ts";
import type { KmsServer } from "./kms-server.ts";
import type { Random } from "./mutations.ts";

/** Pause of a caller after a failed call, in milliseconds, so that a failing load does not spin. */
const pauseMs = 5;
/** Callers work with the newest keys. */
const keysInUse = 30;

const callers = 16;

/** Starts callers of programs, which they call in turn until stopped. */
export function startLoad(options: { evidence: Evidence; servers: readonly KmsServer[]; random: Random }) {
  const { evidence, servers, random } = options;
  let isStopped = false;
  let answered = 0;
  const waiting = new Set<{ readonly at: number; readonly resolve: () => void }>();

  const call = async (witness: Witness): Promise<void> => {
    while (!isStopped) {
      const isAnswered = await doSomething(witness, evidence, random);
      if (!isAnswered) {
        await setTimeout(pauseMs);
        continue;
      }
      answered += 1;
      for (const one of waiting) if (answered >= one.at && waiting.delete(one)) one.resolve();
    }
  };
  const witnesses = servers.map(({ kms }) => createWitness(evidence, kms));
  const running = Array.from({ length: callers }, (_, i) => call(witnesses[i % witnesses.length] as Witness));
  return {
    /**
     * Waits for a number of further answers.
     *
     * @throws Error if a program ends before
     */
    answers: (count: number) =>
      new Promise<void>((resolve, reject) => {
        waiting.add({ at: answered + count, resolve });
        for (const { exit } of servers)
          void exit.then(({ code, stderr }) =>
            reject(new Error(`a program ended with ${code}: ${stderr.slice(-2000)}`)),
          );
      }),
    /** Starts no more calls, and waits for the running ones. */
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(running);
    },
  };
}

/** Makes one of several hundred calls of each kind. */
const shares = { create: 8, createOnce: 8, rotate: 4, rotateOnce: 4, destroy: 8, batchSign: 8, verify: 20 };

function doSomething(witness: Witness, evidence: Evidence, random: Random): Promise<boolean> {
  const living = [...evidence.keys.values()].slice(-keysInUse).filter(({ destroyed }) => destroyed === "no");
  const signing = living.filter(({ algorithm }) => algorithm.startsWith("ML-DSA"));
  const rotatable = living.filter(({ rotated }) => rotated === "no");
  const key = signing.length > 0 ? random.pick(signing) : undefined;
  const data = Buffer.from(`message ${random.below(1000)}`);
  if (key === undefined || rotatable.length === 0) return create(witness, evidence, random, false);

  let dice = random.below(100);
  const falls = (share: number): boolean => {
    dice -= share;
    return dice < 0;
  };
  if (falls(shares.create)) return create(witness, evidence, random, false);
  if (falls(shares.createOnce)) return create(witness, evidence, random, true);
  if (falls(shares.rotate)) return witness.rotate(random.pick(rotatable));
  if (falls(shares.rotateOnce)) return rotateOnce(witness, random.pick(rotatable));
  if (falls(shares.destroy)) return witness.destroy(random.pick(living));
  if (falls(shares.batchSign)) return witness.batchSign(key, [data, data, data]);
  if (falls(shares.verify) && evidence.signatures.length > 0)
    return witness.verify(random.pick(evidence.signatures));
  return witness.sign(key, data);
}

/** Most keys use the fastest algorithm, because the load is meant for the store. */
const algorithms = ["ML-DSA-44", "ML-DSA-44", "ML-DSA-44", "ML-DSA-65", "ML-KEM-512"];

function create(
  witness: Witness,
  { orders }: Evidence,
  random: Random,
  isRepeatable: boolean,
): Promise<boolean> {
  const alias = `order-${orders.size}-${random.below(1e9)}`;
  const order = { alias, algorithm: random.pick(algorithms) };
  return witness.create(isRepeatable ? { ...order, idempotencyKey: alias } : order);
}

function rotateOnce(witness: Witness, key: KeyEvidence): Promise<boolean> {
  return witness.rotate(key, `rotate ${key.keyId}`);
}
