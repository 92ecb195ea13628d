/** A key's life, from its creation to its destruction, and the audit log that records it. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { CheckedEntry } from "../../audit.ts";
import { planCall } from "../../calls.ts";
import { reportBoth, reportServer, sayValid } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Calls } from "../../parts/call-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { LifecycleGraph } from "../../parts/diagrams/lifecycle-graph.tsx";
import { Scene } from "../../parts/diagrams/scene.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { TextField } from "../../parts/fields.tsx";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { useStream } from "../../stream.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import { AuditChain } from "./audit-chain.tsx";
import { keyLifecycle, walkLife } from "./lifecycle.ts";
import { LogVerification } from "./log-verification.tsx";
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
} from "./steps.ts";

const { createKey, watchAuditLog } = KmsService.method;

export function Page() {
  const form = useForm({ alias: "release-signing" });
  const { alias } = form.values;
  const chain = useStream<CheckedEntry>();
  const watching = useStep(async (caller) => {
    const start = await prepareWatch(caller);
    chain.open(watchAuditLog, { afterSequence: start.afterSequence }, receiveEntry);
    return start;
  });
  const creating = useStep((caller) => createManagedKey(caller, alias));
  const suspending = useStep(suspendManagedKey, [creating]);
  const signing = useStep(signAndVerify, [creating]);
  const rotating = useStep(rotateManagedKey, [creating, signing]);
  const scheduling = useStep(scheduleAndRestore, [creating, signing, rotating]);
  const destroying = useStep(destroyManagedKey, [creating, signing, rotating]);
  const life = { creating, suspending, rotating, scheduling, destroying };

  return (
    <Story
      title="Managed keys"
      lead={
        <>
          The key service creates keys and uses them for callers. The secret key never leaves it. Each use and
          each refused attempt has an entry in the audit log, which is on disk before you get an answer. The{" "}
          <a href="#/keys/manage">key manager</a> has all your keys.
        </>
      }
      after={<AuditChain chain={chain} />}
    >
      <Scene title="The life of a key">
        <LifecycleGraph label="States of a key" lifecycle={keyLifecycle} walk={walkLife(life)} />
        <p class="hint">
          The destruction of an active key can be scheduled, too. Any key can be destroyed at once.
        </p>
      </Scene>
      <Watch step={watching} />
      <Step
        step={creating}
        title="Create a key"
        action="Create"
        plan={planCall(createKey, { alias, algorithm })}
        fields={<TextField label="Human-readable name" {...form.bind("alias")} />}
        outcome={({ keyId, status }) => `The key is ${status}. Its ID is ${keyId}.`}
        result={({ publicKey, status }) => (
          <>
            <KeyStates state={status} />
            <Bytes label="Public key" value={publicKey} publicKeyOf={algorithm} />
          </>
        )}
      >
        <p>You get the public key. The server seals the secret key under its master key and stores it.</p>
      </Step>
      <Step
        step={suspending}
        title="Disable it, and enable it again"
        action="Disable and enable"
        outcome={({ refusal, states }) =>
          `While it is disabled, signing is refused with ${refusal.reason}. Now it is ${states.at(-1)}.`
        }
        result={({ refusal }) => <FailureNote failure={refusal} isExpected />}
      >
        <p>A disabled key does nothing. Disable a key as soon as you suspect that someone misuses it.</p>
      </Step>
      <Step
        step={signing}
        title="Sign with it"
        action="Sign and verify"
        outcome={({ signature, verdicts }) =>
          sayValid(verdicts, `A signature of ${formatBytes(signature.length)}, valid for both sides.`)
        }
        result={({ signature, verdicts }) => (
          <>
            <Bytes label="Signature" value={signature} />
            <Checks checks={reportBoth("the signature over the message", verdicts)} />
          </>
        )}
      >
        <p>
          The message is <q>Release 1.4.2</q>. Your browser checks the signature with the public key of the
          previous step.
        </p>
      </Step>
      <Retirement {...life} />
      <LogVerification />
    </Story>
  );
}

function Watch({ step }: { readonly step: StepOf<typeof prepareWatch> }) {
  return (
    <Step
      step={step}
      title="Watch the audit log"
      action="Watch"
      plan={planCall(watchAuditLog, { afterSequence: 0 })}
      outcome={({ totalSize }) =>
        `The log has ${formatNumber(totalSize)} entries. New ones appear below as they are written.`
      }
      result={({ afterSequence }) => <Calls calls={[planCall(watchAuditLog, { afterSequence })]} />}
    >
      <p>
        Each entry contains the hash of the previous entry, so a changed or removed entry changes all later
        ones. Your browser recomputes each hash as the entries arrive. On a server with users, you see the
        entries of your own keys, and auditors see all.
      </p>
    </Step>
  );
}

interface RetirementProps {
  readonly rotating: StepOf<typeof rotateManagedKey>;
  readonly scheduling: StepOf<typeof scheduleAndRestore>;
  readonly destroying: StepOf<typeof destroyManagedKey>;
}

function Retirement({ rotating, scheduling, destroying }: RetirementProps) {
  return (
    <>
      <Step
        step={rotating}
        title="Rotate it"
        action="Rotate"
        outcome={({ refusal, oldKey, valid }) =>
          `The old key is ${oldKey?.status}: signing is refused with ${refusal.reason}, and its old signature is ${valid ? "still valid" : "no longer valid"}.`
        }
        result={({ newKey, oldKey, refusal, valid }) => (
          <>
            <KeyStates state={oldKey?.status} />
            <Facts
              facts={{
                "Old key": `${oldKey?.keyId}, ${oldKey?.status}`,
                "New key": `${newKey?.keyId}, ${newKey?.status}`,
              }}
            />
            <FailureNote failure={refusal} isExpected />
            <Checks checks={[reportServer("the old signature, by the old key", valid)]} />
          </>
        )}
      >
        <p>A new key replaces it. The old key still verifies its signatures, but no longer signs.</p>
      </Step>
      <Step
        step={scheduling}
        title="Schedule its destruction, and take it back"
        action="Schedule and restore"
        outcome={({ refusal, states }) =>
          `The key was ${states[0]}, and verification was refused with ${refusal.reason}. Restored and enabled, it is ${states.at(-1)} again.`
        }
        result={({ refusal }) => <FailureNote failure={refusal} isExpected />}
      >
        <p>
          A waiting period protects against mistakes. Meanwhile the key does nothing. Here it is a week, and
          the key is restored before it ends.
        </p>
      </Step>
      <Step
        step={destroying}
        title="Destroy it"
        action="Destroy"
        outcome={({ newStatus, refusal }) =>
          `The key is ${newStatus}. Verification is refused with ${refusal.reason}.`
        }
        result={({ newStatus, refusal }) => (
          <>
            <KeyStates state={newStatus} />
            <FailureNote failure={refusal} isExpected />
          </>
        )}
      >
        <p>
          The secret key is erased permanently. The record and its audit entries remain. Your browser can
          still verify the old signature, because it has the public key.
        </p>
      </Step>
    </>
  );
}

/** The states of a key, in the only order in which they come. */
function KeyStates({ state }: { readonly state: string | undefined }) {
  return (
    <ol class="life" aria-label="States of a key">
      {["ACTIVE", "ROTATED", "DESTROYED"].map((name) => (
        <li key={name} aria-current={name === state ? "step" : undefined}>
          {name}
        </li>
      ))}
    </ol>
  );
}
