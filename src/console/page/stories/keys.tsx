/** A key's life, from its creation to its destruction, and the audit chain that grows with it. */
import { useState } from "preact/hooks";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { loadSigner } from "../algorithms.ts";
import { type CheckedEntry, checkEntry } from "../audit.ts";
import { planCall } from "../calls.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { Calls } from "../parts/call-view.tsx";
import { bothSides, Checks } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { TextField } from "../parts/fields.tsx";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { type StreamState, useStream } from "../stream.ts";
import { formatBytes, formatNumber, toUtf8 } from "../values.ts";

const { createKey, getKey, rotateKey, destroyKey, sign, verify } = KmsService.method;
const { getAuditLog, watchAuditLog, verifyAuditLog } = KmsService.method;
const data = toUtf8("Release 1.4.2");
const claim = "the signature over the message";
/** So many entries of before are shown when the watching begins. */
const earlierEntries = 2;

export function Page() {
  const [alias, setAlias] = useState("release-signing");
  const chain = useStream<CheckedEntry>();

  const watching = useStep(async ({ call }) => {
    const { totalSize } = await call(getAuditLog, { pageSize: 1 });
    const afterSequence = Math.max(0, totalSize - earlierEntries);
    chain.open(watchAuditLog, { afterSequence }, async ({ entry }, before) => {
      if (entry === undefined) throw new Error("the server sent a message without an entry");
      return checkEntry(entry, before.at(-1));
    });
    return { totalSize, afterSequence };
  });
  const creating = useStep(async ({ call }) => {
    const { result: key } = await call(createKey, { alias, algorithm: "ML-DSA-65" });
    if (key === undefined) throw new Error("the server sent no key");
    return key;
  });
  const signing = useStep(
    async ({ call }) => {
      const { keyId, publicKey = new Uint8Array() } = requireResult(creating);
      const { result } = await call(sign, { keyId, data });
      const signature = result?.signature ?? new Uint8Array();
      const valid = await call(verify, { keyId, data, signature });
      const signer = await loadSigner("ML-DSA-65");
      const validHere = signer.verify(signature, data, publicKey);
      return { signature, valid: valid.result?.valid ?? false, validHere };
    },
    [creating],
  );
  const rotating = useStep(
    async ({ call, callRefused }) => {
      const { keyId } = requireResult(creating);
      const { newKey } = await call(rotateKey, { keyId });
      const { result: oldKey } = await call(getKey, { keyId });
      const refusal = await callRefused(sign, { keyId, data });
      const { signature } = requireResult(signing);
      const valid = await call(verify, { keyId, data, signature });
      return { newKey, oldKey, refusal, valid: valid.result?.valid ?? false };
    },
    [creating, signing],
  );
  const destroying = useStep(
    async ({ call, callRefused }) => {
      const { keyId } = requireResult(creating);
      const { newStatus } = await call(destroyKey, { keyId });
      const { signature } = requireResult(signing);
      const refusal = await callRefused(verify, { keyId, data, signature });
      return { newStatus, refusal };
    },
    [creating, signing, rotating],
  );
  const proving = useStep(async ({ call }) => {
    const { valid, entries, head, checkpoint } = await call(verifyAuditLog, {});
    const signer = await loadSigner("ML-DSA-65");
    const validHere =
      checkpoint !== undefined &&
      signer.verify(checkpoint.signature, toUtf8(checkpoint.statement), checkpoint.publicKey);
    return { valid, entries, head, checkpoint, validHere };
  });

  return (
    <Story
      title="Managed keys"
      lead="The key service makes keys and uses them for others; the secret half never leaves it. Each use, and each attempt that was refused, is an entry in the audit log, which is on the disk before you get an answer."
      after={<Chain chain={chain} />}
    >
      <Step
        step={watching}
        title="Watch the audit log"
        action="Watch"
        plan={planCall(watchAuditLog, { afterSequence: 0 })}
        outcome={({ totalSize }) =>
          `The log has ${formatNumber(totalSize)} entries. New ones appear below as they are written.`
        }
        result={({ afterSequence }) => <Calls calls={[planCall(watchAuditLog, { afterSequence })]} />}
      >
        <p>
          Each entry holds the hash of the one before it, so nobody can change or drop one without changing
          all that follow. Your browser computes each hash again as the entries stream in. On a server with
          users, the log is for auditors.
        </p>
      </Step>
      <Step
        step={creating}
        title="Create a key"
        action="Create"
        plan={planCall(createKey, { alias, algorithm: "ML-DSA-65" })}
        outcome={({ keyId, status }) => `The key is ${status}. Its name is ${keyId}.`}
        result={({ publicKey = new Uint8Array(), status }) => (
          <>
            <Life state={status} />
            <Bytes label="Public key" value={publicKey} />
          </>
        )}
      >
        <p>You get the public half. The secret half is sealed under the server's master key and stored.</p>
        <div class="fields">
          <TextField label="Name for people" value={alias} onChange={setAlias} />
        </div>
      </Step>
      <Step
        step={signing}
        title="Sign with it"
        action="Sign and verify"
        outcome={({ signature, valid, validHere }) =>
          valid && validHere
            ? `A signature of ${formatBytes(signature.length)}, valid for both sides.`
            : "The sides do not both find it valid, which should not be."
        }
        result={({ signature, valid, validHere }) => (
          <>
            <Bytes label="Signature" value={signature} />
            <Checks checks={bothSides(claim, valid, validHere)} />
          </>
        )}
      >
        <p>
          The message is <q>Release 1.4.2</q>. Your browser checks the signature with the public key of the
          step before.
        </p>
      </Step>
      <Step
        step={rotating}
        title="Rotate it"
        action="Rotate"
        outcome={({ refusal, oldKey, valid }) =>
          `The old key is ${oldKey?.status}: to sign is refused with ${refusal.reason}, and its old signature is ${valid ? "still valid" : "no longer valid"}.`
        }
        result={({ newKey, oldKey, refusal, valid }) => (
          <>
            <Life state={oldKey?.status ?? ""} />
            <Facts
              facts={{
                "Old key": `${oldKey?.keyId}, ${oldKey?.status}`,
                "New key": `${newKey?.keyId}, ${newKey?.status}`,
              }}
            />
            <FailureNote failure={refusal} isExpected />
            <Checks checks={[{ by: "server", claim: "the old signature, by the old key", holds: valid }]} />
          </>
        )}
      >
        <p>
          A new key takes its place. The old one still verifies what it has signed, and signs nothing more.
        </p>
      </Step>
      <Step
        step={destroying}
        title="Destroy it"
        action="Destroy"
        outcome={({ newStatus, refusal }) =>
          `The key is ${newStatus}. To verify with it is refused with ${refusal.reason}.`
        }
        result={({ newStatus, refusal }) => (
          <>
            <Life state={newStatus} />
            <FailureNote failure={refusal} isExpected />
          </>
        )}
      >
        <p>
          The secret half is erased and cannot come back. The record and its audit trail stay. Your browser
          could still verify the old signature: it has the public key.
        </p>
      </Step>
      <Step
        step={proving}
        title="Verify the whole log"
        action="Verify the log"
        plan={planCall(verifyAuditLog, {})}
        outcome={({ valid, entries }) =>
          `The server read ${formatNumber(entries)} entries and finds the log ${valid ? "as it was written" : "changed"}.`
        }
        result={({ valid, head, checkpoint, validHere }) => (
          <>
            <Facts
              facts={{
                "Hash of the newest entry": <code>{head}</code>,
                "Signed checkpoint": checkpoint
                  ? `covers the log up to entry ${formatNumber(checkpoint.sequence)}`
                  : "none yet",
              }}
            />
            <Checks
              checks={[
                { by: "server", claim: "every hash and every link", holds: valid },
                ...(checkpoint
                  ? [{ by: "browser" as const, claim: "the signature of the checkpoint", holds: validHere }]
                  : []),
              ]}
            />
          </>
        )}
      >
        <p>
          From time to time the server signs where the log is. Whoever keeps such a checkpoint can tell later
          whether the log was rewritten.
        </p>
      </Step>
    </Story>
  );
}

const states = ["ACTIVE", "ROTATED", "DESTROYED"];

/** The states of a key, in the only order in which they come. */
function Life({ state }: { readonly state: string }) {
  return (
    <ol class="life" aria-label="States of a key">
      {states.map((name) => (
        <li key={name} aria-current={name === state ? "step" : undefined}>
          {name}
        </li>
      ))}
    </ol>
  );
}

const links = { anchor: "taken as it is", holds: "hash computed here", broken: "does not follow" };

function Chain({ chain }: { readonly chain: StreamState<CheckedEntry> }) {
  const { items, status, failure } = chain;
  if (status === "closed" && items.length === 0) return null;
  const checked = items.filter(({ link }) => link === "holds").length;
  const broken = items.filter(({ link }) => link === "broken").length;
  return (
    <>
      <section class="chain" aria-labelledby="chain">
        <h2 id="chain">The audit chain, as it grows</h2>
        <p class="bar" role="status">
          {status !== "failed" || items.length > 0
            ? `${formatNumber(items.length)} entries, ${formatNumber(checked)} hashes computed again by your browser, ${formatNumber(broken)} broken`
            : "There is no stream."}
        </p>
        {status === "open" && (
          <p>
            <button type="button" onClick={chain.close}>
              Stop watching
            </button>
          </p>
        )}
        {failure && <FailureNote failure={failure} />}
        <ol>
          {items.map(({ entry, link }) => (
            <li key={entry.sequence} data-link={link} data-refused={entry.outcome !== "OK"}>
              <span class="number">{formatNumber(entry.sequence)}</span>
              <span class="what">
                <strong>{entry.operation}</strong> {entry.outcome === "OK" ? "" : entry.outcome.toLowerCase()}
                <span class="hint">{entry.details}</span>
              </span>
              <span class="hash">
                <code>{entry.entryHash.slice(0, 16)}…</code>
                <span class="hint">{links[link]}</span>
              </span>
            </li>
          ))}
        </ol>
      </section>
      <Strip items={items} />
    </>
  );
}

/** The newest entries, in sight while the steps above are done. Who can not see it has the list. */
function Strip({ items }: { readonly items: readonly CheckedEntry[] }) {
  return (
    <p class="strip" aria-hidden="true">
      {items.slice(-6).map(({ entry, link }) => (
        <span key={entry.sequence} class="link" data-link={link} data-refused={entry.outcome !== "OK"}>
          <strong>{entry.operation}</strong>
          <code>{entry.entryHash.slice(0, 8)}</code>
        </span>
      ))}
    </p>
  );
}
