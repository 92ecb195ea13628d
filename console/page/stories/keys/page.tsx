/** A key's life from creation to destruction, and the audit log that records it. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { verifyHere } from "../../algorithms.ts";
import { type CheckedEntry, checkEntry, readEntry } from "../../audit.ts";
import { planCall } from "../../calls.ts";
import { reportBoth, reportServer, sayValid } from "../../checks.ts";
import { expectRefusal, Failure, toFailure } from "../../failure.ts";
import { Calls } from "../../parts/call-view.tsx";
import { checkLog, sayLog, showLog } from "../../parts/log-verdict.tsx";
import { bytes, checks, facts, hint, refused, verifiedBy } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { defineSharedStory } from "../../story.tsx";
import { type StoryState, step } from "../../story-step.ts";
import { type StreamState, useStream } from "../../stream.ts";
import { formatBytes, formatNumber, toUtf8 } from "../../values.ts";
import { AuditChain } from "./audit-chain.tsx";
import { LifecycleGraph } from "./lifecycle-graph.tsx";

const { createKey, getKey, rotateKey, destroyKey, sign, verify } = KmsService.method;
const { disableKey, enableKey, restoreKey } = KmsService.method;
const { getAuditLog, verifyAuditLog, watchAuditLog } = KmsService.method;
const algorithm = "ML-DSA-65";
const data = toUtf8("Release 1.4.2");
/** Waiting period of a scheduled destruction: a week. */
const waitingSeconds = 7 * 24 * 60 * 60;
/** Number of earlier entries shown when the stream starts. */
const earlierEntries = 2;
/** Maximum entries kept: a busy server writes many. */
const maxEntries = 500;

/** The audit log as it grows. */
type Chain = StreamState<CheckedEntry>;

export const watching = step({
  title: "Watch the audit log",
  action: "Watch",
  why: `Each entry contains the previous entry's hash, so a changed or removed entry changes all later hashes. Your
    browser recomputes each hash as the entries arrive. On a server with users, you see your own keys' entries,
    and auditors see all.`,
  plan: () => planCall(watchAuditLog, { afterSequence: 0 }),
  run: async ({ call }, _given, chain: Chain) => {
    const { auditLog, totalSize } = await call(getAuditLog, { pageSize: earlierEntries, newestFirst: true });
    // Sequence numbers count all users' entries, of which the caller may see few.
    const afterSequence = Math.max(0, (auditLog.at(-1)?.sequence ?? 0) - 1);
    chain.open(watchAuditLog, { afterSequence }, async (message, before) =>
      checkEntry(readEntry(message), before.at(-1)),
    );
    return { totalSize, afterSequence };
  },
  says: ({ totalSize }) =>
    `The log has ${formatNumber(totalSize)} entries. New ones appear in the diagram when they are written.`,
  shows: ({ afterSequence }) => <Calls calls={[planCall(watchAuditLog, { afterSequence })]} />,
});

export const creating = step({
  title: "Create a key",
  action: "Create",
  why: "You get the public key. The server seals the secret key under its master key and stores it.",
  fields: { alias: textField("Name", "release-signing") },
  plan: ({ alias }) => planCall(createKey, { alias, algorithm }),
  run: async ({ call }, { alias }) => {
    const { result } = await call(createKey, { alias, algorithm });
    if (result === undefined) throw new Error("the server sent no key");
    const { keyId, status, publicKey = new Uint8Array() } = result;
    return { keyId, status, publicKey };
  },
  says: ({ keyId, status }) => `The key is ${status}. Its ID is ${keyId}.`,
  shows: ({ publicKey }) => bytes("Public key", publicKey, algorithm),
});

function readStates(
  ...answers: readonly { readonly result?: { readonly status: string } | undefined }[]
): string[] {
  return answers.flatMap(({ result }) => (result === undefined ? [] : [result.status]));
}

const suspending = step({
  title: "Disable it and enable it again",
  action: "Disable and enable",
  why: "A disabled key cannot be used. Disable a key as soon as you suspect misuse.",
  after: { creating },
  run: async ({ call }, { creating: { keyId } }) => {
    const disabled = await call(disableKey, { keyId });
    const refusal = await expectRefusal(call(sign, { keyId, data }), "KEY_STATE_INVALID");
    const enabled = await call(enableKey, { keyId });
    return { refusal, states: readStates(disabled, enabled) };
  },
  says: ({ refusal, states }) =>
    `While it is disabled, signing is refused with ${refusal.reason}. Now it is ${states.at(-1)}.`,
  shows: ({ refusal }) => refused(refusal),
});

export const signing = step({
  title: "Sign with it",
  action: "Sign and verify",
  why: (
    <p>
      The message is <q>Release 1.4.2</q>. Your browser checks the signature with the public key of the
      previous step.
    </p>
  ),
  after: { creating },
  run: async ({ call }, { creating: { keyId, publicKey } }) => {
    const { result } = await call(sign, { keyId, data });
    const signature = result?.signature ?? new Uint8Array();
    const verified = await call(verify, { keyId, data, signature });
    const browser = await verifyHere(algorithm, signature, data, publicKey);
    return { signature, verdicts: { server: verified.result?.valid ?? false, browser } };
  },
  says: ({ signature, verdicts }) =>
    sayValid(verdicts, `Both sides find the signature of ${formatBytes(signature.length)} valid.`),
  shows: ({ signature, verdicts }) => [
    bytes("Signature", signature),
    checks(reportBoth("the signature over the message", verdicts)),
    verifiedBy(algorithm),
  ],
});

export const rotating = step({
  title: "Rotate it",
  action: "Rotate",
  why: "A new key replaces it. The old key still verifies its signatures, but no longer signs.",
  after: { creating, signing },
  ends: [suspending, signing],
  run: async ({ call }, { creating: { keyId }, signing: { signature } }) => {
    const { newKey } = await call(rotateKey, { keyId });
    const { result: oldKey } = await call(getKey, { keyId });
    const refusal = await expectRefusal(call(sign, { keyId, data }), "KEY_STATE_INVALID");
    const { result } = await call(verify, { keyId, data, signature });
    return { newKey, oldKey, refusal, valid: result?.valid ?? false };
  },
  says: ({ refusal, oldKey, valid }) =>
    `The old key is ${oldKey?.status}: signing is refused with ${refusal.reason}, and its old signature is ${valid ? "still valid" : "no longer valid"}.`,
  shows: ({ newKey, oldKey, refusal, valid }) => [
    facts({
      "Old key": `${oldKey?.keyId}, ${oldKey?.status}`,
      "New key": `${newKey?.keyId}, ${newKey?.status}`,
    }),
    refused(refusal),
    checks(reportServer("the old signature, by the old key", valid)),
  ],
});

const scheduling = step({
  title: "Schedule its destruction and cancel it",
  action: "Schedule and restore",
  why: `A waiting period protects against mistakes. Meanwhile the key cannot be used. Here the period is a
    week, and the key is restored before it ends.`,
  after: { creating, signing, rotating },
  run: async ({ call }, { creating: { keyId }, signing: { signature } }) => {
    const { newStatus } = await call(destroyKey, { keyId, afterSeconds: waitingSeconds });
    const refusal = await expectRefusal(call(verify, { keyId, data, signature }), "KEY_STATE_INVALID");
    const restored = await call(restoreKey, { keyId });
    const enabled = await call(enableKey, { keyId });
    return { refusal, states: [newStatus, ...readStates(restored, enabled)] };
  },
  says: ({ refusal, states }) =>
    `The key was ${states[0]}, and verification was refused with ${refusal.reason}. Restored and enabled, it is ${states.at(-1)} again.`,
  shows: ({ refusal }) => refused(refusal),
});

export const destroying = step({
  title: "Destroy it",
  action: "Destroy",
  why: `The secret key is erased permanently. The record and its audit entries remain. Your browser can still
    verify the old signature, because it has the public key.`,
  after: { creating, signing, rotating },
  ends: [rotating, scheduling],
  run: async ({ call }, { creating: { keyId }, signing: { signature } }) => {
    const { newStatus } = await call(destroyKey, { keyId });
    return {
      newStatus,
      refusal: await expectRefusal(call(verify, { keyId, data, signature }), "KEY_STATE_INVALID"),
    };
  },
  says: ({ newStatus, refusal }) =>
    `The key is ${newStatus}. Verification is refused with ${refusal.reason}.`,
  shows: ({ refusal }) => refused(refusal),
});

export const proving = step({
  title: "Verify the whole log",
  action: "Verify the log",
  why: `The server regularly signs the log's state as a checkpoint. With a stored checkpoint, anyone can later detect
    whether the log was rewritten. On a server with users, this step requires the role auditor or admin.`,
  plan: () => planCall(verifyAuditLog, {}),
  run: async ({ call }) => {
    const found = await call(verifyAuditLog, {}).then(checkLog, toFailure);
    if (found instanceof Failure && found.reason !== "ROLE_MISSING") throw found;
    return found;
  },
  says: (found) =>
    found instanceof Failure ? `The server refuses this to your role: ${found.reason}.` : sayLog(found),
  shows: (found) => (found instanceof Failure ? refused(found) : showLog(found)),
});

/** The key's states so far, in order. */
function walkLife({ read }: StoryState<Chain>): readonly string[] {
  return [
    read(creating)?.status,
    ...(read(suspending)?.states ?? []),
    read(rotating)?.oldKey?.status,
    ...(read(scheduling)?.states ?? []),
    read(destroying)?.newStatus,
  ].filter((state) => state !== undefined);
}

export const Page = defineSharedStory<Chain>({
  title: "Managed keys",
  lead: (
    <>
      The key service creates keys and uses them on behalf of callers. The secret key never leaves it. Each
      use and each refused attempt has an entry in the audit log, which is on disk before you get an answer.
      Equal refusals within five minutes share an entry. The <a href="#/keys/manage">key manager</a> lists all
      your keys.
    </>
  ),
  useShared: () => useStream<CheckedEntry>(maxEntries),
  scene: {
    title: "The key's life cycle",
    shows: (story) => [
      <LifecycleGraph key="graph" walk={walkLife(story)} />,
      hint("An active key's destruction can be scheduled too. Any key can be destroyed immediately."),
      <AuditChain key="chain" chain={story.shared} />,
    ],
  },
  steps: [watching, creating, suspending, signing, rotating, scheduling, destroying, proving],
});
