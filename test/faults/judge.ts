/** Checks a store against what its callers know. */
import { ConnectError } from "@connectrpc/connect";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { readPages } from "../services/answers.ts";
import { readAudit } from "../services/kms/read-audit.ts";
import { describeRefusal } from "../support/refusal.ts";
import { type Count, type Done, type Evidence, type KeyEvidence, noteKey } from "./evidence.ts";
import type { KmsClient } from "./kms-server.ts";

/**
 * Finds everything that the store reports and that cannot be true. Repeats unanswered requests for keys that had an
 * idempotency key. What the store reports becomes known, and the next check holds the store to it. Nobody else may use
 * the store meanwhile.
 *
 * @returns one sentence for each contradiction
 */
export async function findContradictions(evidence: Evidence, kms: KmsClient): Promise<string[]> {
  const asked = await askAgain(evidence, kms);
  const [keys, entries, verified, health] = [
    await listKeys(kms),
    await readAudit(kms),
    await kms.verifyAuditLog({}),
    await kms.getHealth({}),
  ];
  const uses = countUses(entries);
  return [
    ...evidence.contradictions.splice(0),
    ...asked,
    ...say(!verified.valid, `the audit log is broken at ${verified.firstBrokenSequence}: ${verified.reason}`),
    ...say(verified.entries !== entries.length, `${verified.entries} entries, ${entries.length} in the list`),
    ...say(health.keyCount !== keys.length, `${health.keyCount} keys, ${keys.length} in the list`),
    ...findKeyContradictions(evidence, keys),
    ...(await findPublicKeyContradictions(evidence, kms)),
    ...keys.flatMap((key) => findUseContradictions(key, keys, usesOf(uses, key.keyId))),
    ...[...uses]
      .filter(([keyId]) => !keys.some((key) => key.keyId === keyId))
      .map(([keyId]) => `${keyId}: lost`),
    ...keys.flatMap((key) => settle(evidence.keys.get(key.keyId), key, usesOf(uses, key.keyId))),
    ...findLateUses(entries),
  ];
}

/** Returns a sentence if a condition holds. */
export function say(isWrong: boolean, sentence: string): string[] {
  return isWrong ? [sentence] : [];
}

/** Repeats the request twice at once: both must return the same key. */
async function askAgain(evidence: Evidence, kms: KmsClient): Promise<string[]> {
  const repeatable = [...evidence.orders.values()].filter(({ isRepeatable }) => isRepeatable).slice(-100);
  const found: string[] = [];
  for (const order of repeatable) {
    const [first, second] = await Promise.all([order.send(kms), order.send(kms)].map(outcomeOf));
    if (typeof first === "string" || typeof second === "string" || first === undefined) {
      // Another caller may have destroyed the key before the rotation.
      const isLate = first === "KEY_STATE_INVALID" && second === first && order.keyId === undefined;
      found.push(...say(!isLate, `${order.alias}: asked again, was answered ${first} and ${second}`));
      continue;
    }
    const { keyId } = first;
    found.push(
      ...say(keyId !== second?.keyId, `${order.alias}: returned two keys`),
      ...say(
        order.keyId !== undefined && order.keyId !== keyId,
        `${order.alias}: returned a different key when repeated`,
      ),
    );
    noteKey(evidence, first);
  }
  return found;
}

async function outcomeOf(call: Promise<KeyRecord>): Promise<KeyRecord | string> {
  try {
    return await call;
  } catch (error) {
    const { code, reason } = describeRefusal(ConnectError.from(error));
    return reason ?? code;
  }
}

function findKeyContradictions({ keys: known, orders }: Evidence, keys: readonly KeyRecord[]): string[] {
  const ids = new Set(keys.map(({ keyId }) => keyId));
  const aliases = new Set(keys.map(({ alias }) => alias));
  return [
    ...[...known.keys()].filter((keyId) => !ids.has(keyId)).map((keyId) => `${keyId}: is missing`),
    ...keys.filter(({ alias }) => !orders.has(alias)).map(({ alias }) => `${alias}: nobody requested it`),
    ...say(aliases.size !== keys.length, "an order returned two keys"),
    ...say(ids.size !== keys.length, "a key is in the list twice"),
  ];
}

async function findPublicKeyContradictions({ keys }: Evidence, kms: KmsClient): Promise<string[]> {
  const found: string[] = [];
  for (const { keyId, alias, algorithm, publicKey } of [...keys.values()].slice(-50)) {
    const { result } = await kms.getKey({ keyId });
    const isSame = result?.alias === alias && result.algorithm === algorithm;
    const hasSameKey = Buffer.from(publicKey).equals(result?.publicKey ?? new Uint8Array());
    found.push(...say(!isSame || !hasSameKey, `${keyId}: differs from what was acknowledged`));
  }
  return found;
}

/** What the audit log says about the operations on a key. */
type Uses = Readonly<Record<string, number>>;

function countUses(entries: readonly AuditEntry[]): Map<string, Uses> {
  const uses = new Map<string, Record<string, number>>();
  for (const { keyId, operation, outcome } of entries) {
    if (outcome !== "OK") continue;
    const ofKey = uses.get(keyId) ?? {};
    uses.set(keyId, ofKey);
    ofKey[operation] = (ofKey[operation] ?? 0) + 1;
  }
  return uses;
}

function usesOf(uses: Map<string, Uses>, keyId: string) {
  const { CREATE = 0, SIGN = 0, VERIFY = 0, ROTATE = 0, DESTROY = 0 } = uses.get(keyId) ?? {};
  return { CREATE, SIGN, VERIFY, ROTATE, DESTROY };
}

/** One transaction each changes the record, its successor and the log together. */
function findUseContradictions(
  { keyId, alias, status }: KeyRecord,
  keys: readonly KeyRecord[],
  { CREATE, ROTATE, DESTROY }: ReturnType<typeof usesOf>,
): string[] {
  const successors = keys.filter((other) => other.alias === `${alias}-rotated`).length;
  const logged = DESTROY > 0 ? "DESTROYED" : ROTATE > 0 ? "ROTATED" : "ACTIVE";
  return [
    ...say(CREATE !== 1, `${keyId}: was created ${CREATE} times according to the log`),
    ...say(
      ROTATE !== successors,
      `${keyId}: was rotated ${ROTATE} times according to the log, and has ${successors} successors`,
    ),
    ...say(DESTROY > 1, `${keyId}: was destroyed ${DESTROY} times according to the log`),
    ...say(status !== logged, `${keyId}: is ${status}; the log says ${logged}`),
  ];
}

/** Checks a key against what is known about it, and adds what the store reports. */
function settle(
  known: KeyEvidence | undefined,
  { keyId }: KeyRecord,
  { SIGN, VERIFY, ROTATE, DESTROY }: ReturnType<typeof usesOf>,
): string[] {
  const uses = SIGN + VERIFY + ROTATE + DESTROY;
  if (known === undefined) return say(uses > 0, `${keyId}: was used, but nobody knows it`);
  const found = [
    ...findMiscount(`${keyId}: signatures`, known.signatures, SIGN),
    ...findMiscount(`${keyId}: verifications`, known.verifications, VERIFY),
    ...say(isContradicted(known.rotated, ROTATE > 0), `${keyId}: rotated ${known.rotated}, but ${ROTATE}`),
    ...say(
      isContradicted(known.destroyed, DESTROY > 0),
      `${keyId}: destroyed ${known.destroyed}, but ${DESTROY}`,
    ),
  ];
  Object.assign(known.signatures, { least: SIGN, most: SIGN });
  Object.assign(known.verifications, { least: VERIFY, most: VERIFY });
  known.rotated = ROTATE > 0 ? "yes" : "no";
  known.destroyed = DESTROY > 0 ? "yes" : "no";
  return found;
}

function findMiscount(what: string, { least, most }: Count, logged: number): string[] {
  return say(logged < least || logged > most, `${what}: ${least} to ${most}; the log says ${logged}`);
}

function isContradicted(known: Done, isSo: boolean): boolean {
  return (known === "yes" && !isSo) || (known === "no" && isSo);
}

/** Finds keys that, in the order of the log, did something after the end of their life. */
function findLateUses(entries: readonly AuditEntry[]): string[] {
  const rotated = new Set<string>();
  const destroyed = new Set<string>();
  const found: string[] = [];
  for (const { keyId, operation, outcome, sequence } of entries) {
    if (outcome !== "OK") continue;
    const isLate = destroyed.has(keyId) || (rotated.has(keyId) && ["SIGN", "ROTATE"].includes(operation));
    if (isLate) found.push(`${keyId}: ${operation} at ${sequence}, after the end of its life`);
    if (operation === "ROTATE") rotated.add(keyId);
    if (operation === "DESTROY") destroyed.add(keyId);
  }
  return found;
}

/** Reads the list of all keys. */
export async function listKeys(kms: KmsClient): Promise<KeyRecord[]> {
  const { rows } = await readPages(
    (pageToken) => kms.listKeys({ pageToken }),
    ({ keys }) => keys,
  );
  return rows;
}
