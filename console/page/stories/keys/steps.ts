/** The steps of a key's life; the browser verifies signatures and the audit log itself. */
import { KmsService, type WatchAuditLogResponse } from "#gen/kms/kms_service_pb.ts";
import { verifyHere } from "../../algorithms.ts";
import { type CheckedEntry, checkEntry } from "../../audit.ts";
import type { Caller } from "../../caller.ts";
import { toUtf8 } from "../../values.ts";

const { createKey, getKey, rotateKey, destroyKey, sign, verify } = KmsService.method;
const { disableKey, enableKey, restoreKey } = KmsService.method;
const { getAuditLog, verifyAuditLog } = KmsService.method;
export const algorithm = "ML-DSA-65";
const data = toUtf8("Release 1.4.2");
/** The waiting period of a scheduled destruction: a week. */
const waitingSeconds = 7 * 24 * 60 * 60;
/** How many earlier entries the page shows when the stream starts. */
const earlierEntries = 2;

type ManagedKey = Awaited<ReturnType<typeof createManagedKey>>;

export interface Signed {
  readonly signature: Uint8Array;
}

/** Learns from which entry to watch the log. */
export async function prepareWatch({ call }: Caller) {
  const { totalSize } = await call(getAuditLog, { pageSize: 1 });
  return { totalSize, afterSequence: Math.max(0, totalSize - earlierEntries) };
}

/** Checks an entry of the stream. @param before the entries that the stream brought earlier */
export async function receiveEntry(
  { entry }: Pick<WatchAuditLogResponse, "entry">,
  before: readonly CheckedEntry[],
): Promise<CheckedEntry> {
  if (entry === undefined) throw new Error("the server sent a message without an entry");
  return checkEntry(entry, before.at(-1));
}

export async function createManagedKey({ call }: Caller, alias: string) {
  const { result } = await call(createKey, { alias, algorithm });
  if (result === undefined) throw new Error("the server sent no key");
  const { keyId, status, publicKey = new Uint8Array() } = result;
  return { keyId, status, publicKey };
}

export async function signAndVerify({ call }: Caller, { keyId, publicKey }: ManagedKey) {
  const { result } = await call(sign, { keyId, data });
  const signature = result?.signature ?? new Uint8Array();
  const verified = await call(verify, { keyId, data, signature });
  const browser = await verifyHere(algorithm, signature, data, publicKey);
  return { signature, verdicts: { server: verified.result?.valid ?? false, browser } };
}

/** Rotates the key, after which the old one verifies and does not sign. */
export async function rotateManagedKey(
  { call, callRefused }: Caller,
  { keyId }: ManagedKey,
  { signature }: Signed,
) {
  const { newKey } = await call(rotateKey, { keyId });
  const { result: oldKey } = await call(getKey, { keyId });
  const refusal = await callRefused(sign, { keyId, data });
  const { result } = await call(verify, { keyId, data, signature });
  return { newKey, oldKey, refusal, valid: result?.valid ?? false };
}

/** Disables the key, after which it does not sign, and enables it again. */
export async function suspendManagedKey({ call, callRefused }: Caller, { keyId }: ManagedKey) {
  const disabled = await call(disableKey, { keyId });
  const refusal = await callRefused(sign, { keyId, data });
  const enabled = await call(enableKey, { keyId });
  return { refusal, states: readStates(disabled, enabled) };
}

/** Schedules the destruction of the key, takes it back, and enables the key again. */
export async function scheduleAndRestore(
  { call, callRefused }: Caller,
  { keyId }: ManagedKey,
  { signature }: Signed,
) {
  const { newStatus } = await call(destroyKey, { keyId, afterSeconds: waitingSeconds });
  const refusal = await callRefused(verify, { keyId, data, signature });
  const restored = await call(restoreKey, { keyId });
  const enabled = await call(enableKey, { keyId });
  return { refusal, states: [newStatus, ...readStates(restored, enabled)] };
}

function readStates(
  ...answers: readonly { readonly result?: { readonly status: string } | undefined }[]
): string[] {
  return answers.flatMap(({ result }) => (result === undefined ? [] : [result.status]));
}

/** Destroys the key, after which it does not even verify. */
export async function destroyManagedKey(
  { call, callRefused }: Caller,
  { keyId }: ManagedKey,
  { signature }: Signed,
) {
  const { newStatus } = await call(destroyKey, { keyId });
  return { newStatus, refusal: await callRefused(verify, { keyId, data, signature }) };
}

/** Has the server verify its log, and verifies the signed checkpoint here. */
export async function verifyLog({ call }: Caller) {
  const { valid, entries, head, checkpoint } = await call(verifyAuditLog, {});
  const isCheckpointSigned =
    checkpoint !== undefined &&
    (await verifyHere(algorithm, checkpoint.signature, toUtf8(checkpoint.statement), checkpoint.publicKey));
  return { valid, entries, head, checkpoint, isCheckpointSigned };
}
