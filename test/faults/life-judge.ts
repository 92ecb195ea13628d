/** Checks a store against what its callers know. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { readPages } from "../services/answers.ts";
import { move, type State } from "../services/kms/key-states.ts";
import { readAudit } from "../services/kms/read-audit.ts";
import type { KmsClient } from "./kms-server.ts";
import {
  type Count,
  contested,
  type Line,
  type Lives,
  type Logged,
  newVersion,
  replay,
  type Version,
} from "./life-model.ts";

/**
 * Finds everything that the store reports and that cannot be true, once all destructions due soon have happened.
 * Repeats requests that had an idempotency key. What the store reports becomes known, and the next check holds the store
 * to it. Nobody else may use the store meanwhile.
 *
 * @returns one sentence for each contradiction
 */
export async function judgeLives(lives: Lives, kms: KmsClient): Promise<string[]> {
  const asked = await askAgain(lives, kms);
  const overdue = await findOverdue(kms, findDueSoon(lives, await listKeys(kms)));
  const [keys, entries] = [await listKeys(kms), await readAudit(kms)];
  const [verified, health] = [await kms.verifyAuditLog({}), await kms.getHealth({})];
  const { logged, forbidden } = replay(entries);
  const byName = Map.groupBy(keys, ({ name = "" }) => name);
  const found = [
    ...lives.contradictions.splice(0),
    ...asked,
    ...overdue.map((keyId) => `${keyId}: is due, but was not destroyed`),
    ...forbidden,
    ...say(!verified.valid, `the audit log is broken at ${verified.firstBrokenSequence}: ${verified.reason}`),
    ...say(verified.entries !== entries.length, `${verified.entries} entries, ${entries.length} in the list`),
    ...say(health.keyCount !== keys.length, `${health.keyCount} keys, ${keys.length} in the list`),
    ...say(new Set(keys.map(({ keyId }) => keyId)).size !== keys.length, "a key is in the list twice"),
    ...[...byName.keys()]
      .filter((name) => !isRequested(lives, name))
      .map((name) => `${name}: nobody requested it`),
    ...say(logged.size !== keys.length, `${keys.length} keys; the log says ${logged.size}`),
    ...keys.flatMap((key) => compareWithLog(key, logged.get(key.keyId))),
    ...[...logged].flatMap(([keyId, key]) => checkDestructions(keyId, key)),
    ...[...lives.lines.values()].flatMap((line) => checkLine(line, byName.get(line.name) ?? [], logged)),
    ...(await checkByName(lives, kms)),
    ...(await checkGrants(lives, kms)),
  ];
  if ([...logged.values()].some(({ destructions }) => destructions.some(({ dueMs }) => dueMs)))
    lives.happened.add("DESTROY_WHEN_DUE");
  for (const line of lives.lines.values()) settle(lives, line, byName.get(line.name) ?? [], logged);
  return found;
}

/** Reads the list of all keys. */
async function listKeys(kms: KmsClient): Promise<KeyRecord[]> {
  const { rows } = await readPages(
    (pageToken) => kms.listKeys({ pageToken }),
    ({ keys }) => keys,
  );
  return rows;
}

/** Returns a sentence if a condition holds. */
function say(isWrong: boolean, sentence: string): string[] {
  return isWrong ? [sentence] : [];
}

function isRequested({ lines }: Lives, name: string): boolean {
  return lines.has(name) || name.startsWith(contested);
}

/** Repeats requests twice at once: both must return the same key. */
async function askAgain({ lines }: Lives, kms: KmsClient): Promise<string[]> {
  const touched = [...lines.values()].filter(({ isTouched, again }) => isTouched && again !== undefined);
  const found: string[] = [];
  for (const { name, again } of touched.slice(-100)) {
    if (again === undefined) continue;
    const answers = await Promise.allSettled([again.send(kms), again.send(kms)]);
    const ids = answers.map((one) => (one.status === "fulfilled" ? one.value.keyId : String(one.reason)));
    again.keyId ??= ids[0];
    found.push(
      ...say(
        ids.some((id) => id !== again.keyId),
        `${name}: asked again for ${again.keyId}, was answered ${ids.join(" and ")}`,
      ),
    );
  }
  return found;
}

/** Time ahead of destructions that a later check covers, in milliseconds. */
const soonMs = 60_000;

/** The keys to be destroyed soon, according to the store and to what was acknowledged. */
function findDueSoon({ lines }: Lives, keys: readonly KeyRecord[]): Set<string> {
  const soon = Date.now() + soonMs;
  const scheduled = keys.filter(({ destroyAt }) => destroyAt && timestampDate(destroyAt).getTime() < soon);
  const acknowledged = [...lines.values()].flatMap(({ versions, pending }) =>
    versions.filter(
      (version) =>
        version !== pending?.version &&
        version.state === "DESTROY_SCHEDULED" &&
        (version.destroyAtMs ?? Number.POSITIVE_INFINITY) < soon,
    ),
  );
  return new Set([...scheduled, ...acknowledged].map(({ keyId }) => keyId));
}

/** Time after which an overdue destruction is certainly late, in milliseconds. */
const patienceMs = soonMs + 120_000;

/** Watches the log until the schedule has destroyed the given keys, and returns the keys that it did not. */
async function findOverdue(kms: KmsClient, waiting: Set<string>): Promise<string[]> {
  if (waiting.size === 0) return [];
  const filter = { afterSequence: 0, operation: "DESTROY", user: "schedule" };
  try {
    for await (const { entry } of kms.watchAuditLog(filter, { timeoutMs: patienceMs })) {
      waiting.delete(entry?.keyId ?? "");
      if (waiting.size === 0) return [];
    }
  } catch (error) {
    if (ConnectError.from(error).code !== Code.DeadlineExceeded) throw error;
  }
  return [...waiting];
}

function compareWithLog({ keyId, status }: KeyRecord, logged: Logged | undefined): string[] {
  return say(status !== logged?.state, `${keyId}: is ${status}; the log says ${logged?.state}`);
}

/** A destruction happens at most once, and a scheduled one not before its time. */
function checkDestructions(keyId: string, { destructions }: Logged): string[] {
  return [
    ...say(destructions.length > 1, `${keyId}: was destroyed ${destructions.length} times`),
    ...destructions.flatMap(({ user, atMs, dueMs }) => {
      const isScheduled = dueMs !== undefined;
      return [
        ...say(isScheduled !== (user === "schedule"), `${keyId}: was destroyed by ${user}, due at ${dueMs}`),
        ...say(isScheduled && atMs < dueMs, `${keyId}: was destroyed early: at ${atMs}, due at ${dueMs}`),
      ];
    }),
  ];
}

function checkLine(line: Line, keys: readonly KeyRecord[], logged: ReadonlyMap<string, Logged>): string[] {
  const { name, versions, pending } = line;
  const mayGrow = ["CREATE", "IMPORT", "ROTATE"].includes(pending?.operation ?? "");
  const known = new Set(versions.map(({ keyId }) => keyId));
  const added = keys.filter(({ keyId }) => !known.has(keyId)).length;
  const primary = keys.filter(({ isPrimary }) => isPrimary);
  const rotated = keys.filter(({ keyId }) => logged.get(keyId)?.wasRotated).length;
  return [
    ...say(added > (mayGrow ? 1 : 0), `${name}: has ${added} unrequested versions`),
    ...say(
      keys.length > 0 && rotated !== keys.length - 1,
      `${name}: was rotated ${rotated} times, has ${keys.length} versions`,
    ),
    ...say(keys.length > 0 && primary.length !== 1, `${name}: has ${primary.length} primary versions`),
    ...say(primary[0]?.version !== keys.at(-1)?.version, `${name}: its primary version is not the newest`),
    ...versions.flatMap((version) => {
      const found = keys.find(({ keyId }) => keyId === version.keyId);
      if (found === undefined) return [`${name}: its version ${version.keyId} is lost`];
      const allowed = listPossible(line, version);
      const { signed = 0, verified = 0 } = logged.get(version.keyId) ?? {};
      return [
        ...say(!allowed.includes(found.status), `${name}: is ${found.status}, acknowledged as ${allowed}`),
        ...findMiscount(`${name}: signatures`, version.signed, signed),
        ...findMiscount(`${name}: verifications`, version.verified, verified),
      ];
    }),
  ];
}

function findMiscount(what: string, { least, most }: Count, logged: number): string[] {
  return say(logged < least || logged > most, `${what}: ${least} to ${most}; the log says ${logged}`);
}

/** States that a version may have: the acknowledged state, the state after the unanswered call, and what follows. */
function listPossible({ pending }: Line, version: Line["versions"][number]): string[] {
  const states: State[] = [version.state];
  const mayChange = pending !== undefined && pending.version === version;
  const changed = mayChange ? move(version.state, pending.operation, version.wasRotated) : undefined;
  if (changed !== undefined) states.push(changed);
  const isDue = version.destroyAtMs !== undefined && version.destroyAtMs <= Date.now();
  if (isDue || changed === "DESTROY_SCHEDULED") states.push("DESTROYED");
  return states;
}

/** GetKey by name must agree with the list, for recently used names. */
async function checkByName({ lines }: Lives, kms: KmsClient): Promise<string[]> {
  const found: string[] = [];
  for (const { name, versions, isTouched } of lines.values()) {
    if (!isTouched || versions.length === 0) continue;
    const answer = await kms.getKey({ keyId: `name/${name}` }).catch(() => undefined);
    if (answer === undefined) {
      found.push(`${name}: GetKey does not find it`);
      continue;
    }
    const ids = answer.versions.map(({ keyId }) => keyId);
    const { publicKey } = versions.find(({ keyId }) => keyId === answer.result?.keyId) ?? {};
    const hasSameKey =
      publicKey === undefined ||
      Buffer.from(publicKey).equals(answer.result?.publicKey ?? publicKey.subarray(0, 0));
    const isSame = versions.every(({ keyId }, i) => ids[i] === keyId);
    found.push(
      ...say(!hasSameKey, `${name}: has a different public key`),
      ...say(!isSame, `${name}: GetKey lists different versions`),
      ...say(answer.result?.keyId !== ids.at(-1), `${name}: GetKey returns a different version`),
    );
  }
  return found;
}

async function checkGrants(lives: Lives, kms: KmsClient): Promise<string[]> {
  const { rows } = await readPages(
    (pageToken) => kms.listGrants({ pageToken }),
    ({ grants }) => grants,
  );
  const present = new Set(rows.map(({ grantId }) => grantId));
  const unknown = [...present].filter((grantId) => !lives.grants.has(grantId));
  const found = say(
    unknown.length > lives.grantsAsked,
    `${unknown.length} grants, asked ${lives.grantsAsked}`,
  );
  for (const [grantId, state] of lives.grants) {
    const isThere = present.has(grantId);
    found.push(
      ...say(state === "granted" && !isThere, `${grantId}: is lost`),
      ...say(state === "revoked" && isThere, `${grantId}: is back`),
    );
    lives.grants.set(grantId, isThere ? "granted" : "revoked");
  }
  for (const grantId of unknown) lives.grants.set(grantId, "granted");
  lives.grantsAsked = 0;
  return found;
}

function settle(
  { lines }: Lives,
  line: Line,
  keys: readonly KeyRecord[],
  logged: ReadonlyMap<string, Logged>,
): void {
  if (keys.length === 0) lines.delete(line.name);
  line.pending = undefined;
  line.isTouched = false;
  line.versions = keys.map(({ keyId }) => {
    const known: Partial<Version> = line.versions.find((version) => version.keyId === keyId) ?? {};
    const {
      state = "ACTIVE",
      wasRotated = false,
      destroyAtMs,
      signed = 0,
      verified = 0,
    } = logged.get(keyId) ?? {};
    return {
      ...newVersion({ keyId, publicKey: known.publicKey }),
      ...{ state, wasRotated, destroyAtMs, signature: known.signature },
      ...{ signed: { least: signed, most: signed }, verified: { least: verified, most: verified } },
    };
  });
}
