/** A verifiable log: a Merkle tree under a signed root, a proof that the browser follows, and a flipped bit. */
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { bytes, checks, code, evidence, facts, hint } from "../../parts/show.tsx";
import { choiceField, numberField } from "../../parts/step-fields.tsx";
import { settings } from "../../settings.ts";
import { defineStory } from "../../story.tsx";
import { type Step, type StoryState, step } from "../../story-step.ts";
import { formatNumber } from "../../values.ts";
import { breakProof, growLog, logs, type Proved, proveLeaf, readHead } from "./steps.ts";
import { nameRange } from "./tree.ts";
import { TreeView } from "./tree-view.tsx";

const growing = step({
  title: "Add entries",
  action: "Add six blocks",
  why: "Each block of the chain is a leaf of the log “blockchain”. The server signs at most one root in a second.",
  run: (caller) => growLog(caller),
  says: ({ count, size }) =>
    `${formatNumber(count)} blocks were added. The log has ${formatNumber(size)} entries.`,
});

const reading = step({
  title: "Read the signed root",
  action: "Read",
  why: `A checkpoint names the log, the number of its entries and the root. Everyone gets the same one. The keys come from
    the server here; a real auditor has them from another source.`,
  fields: { log: choiceField("Log", logs[0], logs) },
  plan: ({ log }) => planCall(LogService.method.getCheckpoint, { log }, withoutToken),
  run: (caller, { log }) => readHead(caller, log),
  says: ({ checkpoint }) =>
    sayExpected(
      checkpoint.isSigned,
      `The log has ${formatNumber(checkpoint.size)} entries, and its root is signed with ML-DSA-65.`,
      "The signature of the checkpoint is not valid",
    ),
  shows: ({ checkpoint }) => [
    facts({ Log: code(checkpoint.origin) }),
    evidence("Root and signature", bytes("Root", checkpoint.root), bytes("Signature", checkpoint.signature)),
    checks(reportBrowser("the log's signature over the checkpoint", checkpoint.isSigned)),
  ],
});

const leaf = numberField("Leaf", "1");

const proving = step({
  title: "Prove that an entry is in the log",
  action: "Get the proof and follow it",
  why: `The proof has one hash for each level: that of the neighbour. A log with a million entries needs 20 hashes, 640
    bytes.`,
  fields: { leaf },
  after: { reading },
  run: (caller, given) => proveLeaf(caller, given.reading, parseLeaf(given.leaf)),
  says: ({ inclusion, isInTree }) =>
    sayExpected(
      isInTree,
      `With ${formatNumber(inclusion.hashes.length)} hashes, your browser gets from leaf ${formatNumber(inclusion.index)} to the signed root.`,
      "The proof does not lead to the signed root",
    ),
  shows: showProof,
});

const breaking = step({
  title: "Flip one bit",
  action: "Flip and recompute",
  why: "Nothing is sent. Your browser flips a bit in its copy, and computes the way to the root again.",
  fields: { place: choiceField("Where (0: the leaf; 1 and more: a hash of the proof)", "0", listPlaces) },
  after: { reading, proving },
  run: (_caller, given) => breakProof(given.reading, given.proving, Number(given.place)),
  says: ({ isInTree }) =>
    sayExpected(
      !isInTree,
      "The computed root is not the signed one. Every hash above the bit is another one.",
      "The root is still the same",
    ),
  shows: showProof,
});

function parseLeaf(text: string): number {
  return Math.max(0, Number.parseInt(text, 10) || 0);
}

/** The leaf, and each hash of the proof. */
function listPlaces({ read }: StoryState): readonly string[] {
  const count = (read(proving)?.inclusion.hashes.length ?? 0) + 1;
  return Array.from({ length: count }, (_none, at) => String(at));
}

function showProof({ inclusion, nodes, isInTree }: Proved) {
  return [
    evidence(
      "The leaf, and the hashes",
      bytes("Data of the leaf", inclusion.leaf),
      nodes.map((node) =>
        bytes(`${node.source === "given" ? "Given" : "Computed"}: ${nameRange(node)}`, node.hash),
      ),
    ),
    checks(reportEqual("the computed root, compared with the signed one", isInTree)),
  ];
}

function showTree({ read, valueIn, fill, start }: StoryState) {
  const head = read(reading);
  if (head === undefined) return hint("Read the signed root, and the tree appears here. Then press a leaf.");
  const proved = read(proving);
  return (
    <TreeView
      head={head}
      chosen={proved?.inclusion.index ?? parseLeaf(valueIn(leaf))}
      proved={proved}
      broken={read(breaking)}
      onChoose={(index) => {
        fill(leaf, String(index));
        void start(proving);
      }}
    />
  );
}

const growSteps: readonly Step<unknown>[] = settings.services.has(BlockchainService.typeName)
  ? [growing]
  : [];

export const Page = defineStory({
  title: "Verifiable log",
  lead: `A log is a Merkle tree: each node is the hash of its two children, and the server signs the root. A proof of a
    few hashes shows that an entry is in the log. Nobody can change an entry without changing the root.`,
  scene: { title: "The tree, computed in your browser", shows: showTree },
  steps: [...growSteps, reading, proving, breaking],
});
