/** A key's life, from its creation to its destruction, and the audit log that records it. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { CheckedEntry } from "../../audit.ts";
import { planCall } from "../../calls.ts";
import { reportBoth, reportBrowser, reportServer, sayValid } from "../../checks.ts";
import { Calls } from "../../parts/call-view.tsx";
import { bytes, checks, code, facts, hint, refused } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { defineSharedStory } from "../../story.tsx";
import { type StoryState, step } from "../../story-step.ts";
import { type StreamState, useStream } from "../../stream.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import { AuditChain } from "./audit-chain.tsx";
import { LifecycleGraph } from "./lifecycle-graph.tsx";
import {
  algorithm,
  createManagedKey,
  destroyManagedKey,
  prepareWatch,
  receiveEntry,
  rotateManagedKey,
  scheduleAndRestore,
  signAndVerify,
  suspendManagedKey,
  verifyLog,
} from "./steps.ts";

const { createKey, verifyAuditLog, watchAuditLog } = KmsService.method;

/** The audit log as it grows. */
type Chain = StreamState<CheckedEntry>;

const watching = step({
  title: "Watch the audit log",
  action: "Watch",
  why: `Each entry contains the hash of the previous entry, so a changed or removed entry changes all later ones. Your
    browser recomputes each hash as the entries arrive. On a server with users, you see the entries of your own keys,
    and auditors see all.`,
  plan: () => planCall(watchAuditLog, { afterSequence: 0 }),
  run: async (caller, _given, chain: Chain) => {
    const start = await prepareWatch(caller);
    chain.open(watchAuditLog, { afterSequence: start.afterSequence }, receiveEntry);
    return start;
  },
  says: ({ totalSize }) =>
    `The log has ${formatNumber(totalSize)} entries. New ones appear in the diagram as they are written.`,
  shows: ({ afterSequence }) => <Calls calls={[planCall(watchAuditLog, { afterSequence })]} />,
});

const creating = step({
  title: "Create a key",
  action: "Create",
  why: "You get the public key. The server seals the secret key under its master key and stores it.",
  fields: { alias: textField("Human-readable name", "release-signing") },
  plan: ({ alias }) => planCall(createKey, { alias, algorithm }),
  run: (caller, { alias }) => createManagedKey(caller, alias),
  says: ({ keyId, status }) => `The key is ${status}. Its ID is ${keyId}.`,
  shows: ({ publicKey }) => bytes("Public key", publicKey, algorithm),
});

const suspending = step({
  title: "Disable it, and enable it again",
  action: "Disable and enable",
  why: "A disabled key does nothing. Disable a key as soon as you suspect that someone misuses it.",
  after: { creating },
  run: (caller, given) => suspendManagedKey(caller, given.creating),
  says: ({ refusal, states }) =>
    `While it is disabled, signing is refused with ${refusal.reason}. Now it is ${states.at(-1)}.`,
  shows: ({ refusal }) => refused(refusal),
});

const signing = step({
  title: "Sign with it",
  action: "Sign and verify",
  why: (
    <p>
      The message is <q>Release 1.4.2</q>. Your browser checks the signature with the public key of the
      previous step.
    </p>
  ),
  after: { creating },
  run: (caller, given) => signAndVerify(caller, given.creating),
  says: ({ signature, verdicts }) =>
    sayValid(verdicts, `A signature of ${formatBytes(signature.length)}, valid for both sides.`),
  shows: ({ signature, verdicts }) => [
    bytes("Signature", signature),
    checks(reportBoth("the signature over the message", verdicts)),
  ],
});

const rotating = step({
  title: "Rotate it",
  action: "Rotate",
  why: "A new key replaces it. The old key still verifies its signatures, but no longer signs.",
  after: { creating, signing },
  run: (caller, given) => rotateManagedKey(caller, given.creating, given.signing),
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
  title: "Schedule its destruction, and take it back",
  action: "Schedule and restore",
  why: `A waiting period protects against mistakes. Meanwhile the key does nothing. Here it is a week, and the key is
    restored before it ends.`,
  after: { creating, signing, rotating },
  run: (caller, given) => scheduleAndRestore(caller, given.creating, given.signing),
  says: ({ refusal, states }) =>
    `The key was ${states[0]}, and verification was refused with ${refusal.reason}. Restored and enabled, it is ${states.at(-1)} again.`,
  shows: ({ refusal }) => refused(refusal),
});

const destroying = step({
  title: "Destroy it",
  action: "Destroy",
  why: `The secret key is erased permanently. The record and its audit entries remain. Your browser can still verify the
    old signature, because it has the public key.`,
  after: { creating, signing, rotating },
  run: (caller, given) => destroyManagedKey(caller, given.creating, given.signing),
  says: ({ newStatus, refusal }) =>
    `The key is ${newStatus}. Verification is refused with ${refusal.reason}.`,
  shows: ({ refusal }) => refused(refusal),
});

const proving = step({
  title: "Verify the whole log",
  action: "Verify the log",
  why: `From time to time, the server signs the state of the log. With a stored checkpoint, anyone can detect later
    whether the log was rewritten. On a server with users, this step needs the role auditor.`,
  plan: () => planCall(verifyAuditLog, {}),
  run: verifyLog,
  says: ({ valid, entries }) =>
    `The server read ${formatNumber(entries)} entries and finds the log ${valid ? "unchanged" : "changed"}.`,
  shows: ({ valid, head, checkpoint, isCheckpointSigned }) => [
    facts({
      "Hash of the newest entry": code(head),
      "Signed checkpoint": checkpoint
        ? `covers the log up to entry ${formatNumber(checkpoint.sequence)}`
        : "none yet",
    }),
    checks(
      reportServer("every hash and every link", valid),
      checkpoint ? reportBrowser("the signature of the checkpoint", isCheckpointSigned) : [],
    ),
  ],
});

/** The states of the key so far, in their order. */
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
      The key service creates keys and uses them for callers. The secret key never leaves it. Each use and
      each refused attempt has an entry in the audit log, which is on disk before you get an answer. The{" "}
      <a href="#/keys/manage">key manager</a> has all your keys.
    </>
  ),
  useShared: () => useStream<CheckedEntry>(),
  scene: {
    title: "The life of a key",
    shows: (story) => [
      <LifecycleGraph key="graph" walk={walkLife(story)} />,
      hint("The destruction of an active key can be scheduled, too. Any key can be destroyed at once."),
      <AuditChain key="chain" chain={story.shared} />,
    ],
  },
  steps: [watching, creating, suspending, signing, rotating, scheduling, destroying, proving],
});
