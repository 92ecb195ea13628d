/** A verifiable log: a Merkle tree under a signed root, a proof that the browser follows, and a flipped bit. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { Scene } from "../../parts/diagrams/scene.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Choice, NumberField } from "../../parts/fields.tsx";
import { settings } from "../../settings.ts";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatNumber } from "../../values.ts";
import { breakProof, growLog, logs, type Proved, proveLeaf, readHead } from "./steps.ts";
import { nameRange } from "./tree.ts";
import { TreeView } from "./tree-view.tsx";

export function Page() {
  const form = useForm({ log: logs[0] as string, leaf: "1", place: "0" });
  const leaf = Math.max(0, Number.parseInt(form.values.leaf, 10) || 0);
  // A press on a leaf starts the proof before the form is drawn again.
  const chosen = useRef(leaf);
  chosen.current = leaf;
  const growing = useStep((caller) => growLog(caller));
  const reading = useStep((caller) => readHead(caller, form.values.log));
  const proving = useStep((caller, head) => proveLeaf(caller, head, chosen.current), [reading]);
  const breaking = useStep(
    (_caller, head, proved) => breakProof(head, proved, Number(form.values.place)),
    [reading, proving],
  );
  const head = reading.value;
  const choose = (index: number): void => {
    form.bind("leaf").onChange(String(index));
    chosen.current = index;
    void proving.start();
  };

  return (
    <Story
      title="Verifiable log"
      lead="A log is a Merkle tree: each node is the hash of its two children, and the server signs the root. A proof of a few hashes shows that an entry is in the log. Nobody can change an entry without changing the root."
    >
      <Scene title="The tree, computed in your browser">
        {head ? (
          <TreeView
            head={head}
            chosen={proving.value?.inclusion.index ?? leaf}
            proved={proving.value}
            broken={breaking.value}
            onChoose={choose}
          />
        ) : (
          <p class="hint">Read the signed root, and the tree appears here. Then press a leaf.</p>
        )}
      </Scene>
      {settings.services.has(BlockchainService.typeName) && <Growing step={growing} />}
      <Step
        step={reading}
        title="Read the signed root"
        action="Read"
        plan={planCall(LogService.method.getCheckpoint, { log: form.values.log }, withoutToken)}
        fields={<Choice label="Log" {...form.bind("log")} options={logs} />}
        outcome={({ checkpoint }) =>
          sayExpected(
            checkpoint.isSigned,
            `The log has ${formatNumber(checkpoint.size)} entries, and its root is signed with ML-DSA-65.`,
            "The signature of the checkpoint is not valid",
          )
        }
        result={({ checkpoint }) => (
          <>
            <Facts facts={{ Log: <code>{checkpoint.origin}</code> }} />
            <Evidence label="Root and signature">
              <Bytes label="Root" value={checkpoint.root} />
              <Bytes label="Signature" value={checkpoint.signature} />
            </Evidence>
            <Checks
              checks={[reportBrowser("the log's signature over the checkpoint", checkpoint.isSigned)]}
            />
          </>
        )}
      >
        <p>
          A checkpoint names the log, the number of its entries and the root. Everyone gets the same one. The
          keys come from the server here; a real auditor has them from another source.
        </p>
      </Step>
      <Proving step={proving} field={<NumberField label="Leaf" {...form.bind("leaf")} />} />
      <Step
        step={breaking}
        title="Flip one bit"
        action="Flip and recompute"
        fields={
          <Choice
            label="Where (0: the leaf; 1 and more: a hash of the proof)"
            {...form.bind("place")}
            options={Array.from({ length: (proving.value?.inclusion.hashes.length ?? 0) + 1 }, (_none, at) =>
              String(at),
            )}
          />
        }
        outcome={({ isInTree }) =>
          sayExpected(
            !isInTree,
            "The computed root is not the signed one. Every hash above the bit is another one.",
            "The root is still the same",
          )
        }
        result={(proved) => <Computed proved={proved} />}
      >
        <p>Nothing is sent. Your browser flips a bit in its copy, and computes the way to the root again.</p>
      </Step>
    </Story>
  );
}

function Growing({ step }: { readonly step: StepOf<typeof growLog> }) {
  return (
    <Step
      step={step}
      title="Add entries"
      action="Add six blocks"
      outcome={({ count, size }) =>
        `${formatNumber(count)} blocks were added. The log has ${formatNumber(size)} entries.`
      }
    >
      <p>
        Each block of the chain is a leaf of the log “blockchain”. The server signs at most one root in a
        second.
      </p>
    </Step>
  );
}

interface ProvingProps {
  readonly step: StepOf<typeof proveLeaf>;
  readonly field: ComponentChildren;
}

function Proving({ step, field }: ProvingProps) {
  return (
    <Step
      step={step}
      title="Prove that an entry is in the log"
      action="Get the proof and follow it"
      fields={field}
      outcome={({ inclusion, isInTree }) =>
        sayExpected(
          isInTree,
          `With ${formatNumber(inclusion.hashes.length)} hashes, your browser gets from leaf ${formatNumber(inclusion.index)} to the signed root.`,
          "The proof does not lead to the signed root",
        )
      }
      result={(proved) => <Computed proved={proved} />}
    >
      <p>
        The proof has one hash for each level: that of the neighbour. A log with a million entries needs 20
        hashes, 640 bytes.
      </p>
    </Step>
  );
}

function Computed({ proved: { inclusion, nodes, isInTree } }: { readonly proved: Proved }) {
  return (
    <>
      <Evidence label="The leaf, and the hashes">
        <Bytes label="Data of the leaf" value={inclusion.leaf} />
        {nodes.map((node) => (
          <Bytes
            key={`${node.start} ${node.end}`}
            label={`${node.source === "given" ? "Given" : "Computed"}: ${nameRange(node)}`}
            value={node.hash}
          />
        ))}
      </Evidence>
      <Checks checks={[reportEqual("the computed root, compared with the signed one", isInTree)]} />
    </>
  );
}
