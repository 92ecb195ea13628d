/**
 * A verifiable log: a Merkle tree under a signed root, a proof that the browser checks, and a flipped bit.
 */
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { Failure } from "../../failure.ts";
import { bytes, checks, code, evidence, facts, hint, verifiedBy } from "../../parts/show.tsx";
import { choiceField, numberField } from "../../parts/step-fields.tsx";
import { settings } from "../../settings.ts";
import { defineStory } from "../../story.tsx";
import { type Step, type StoryState, step } from "../../story-step.ts";
import { areEqual, formatNumber, toUtf8 } from "../../values.ts";
import { waitUntil } from "../../wait.ts";
import { type Checkpoint, readCheckpoint } from "./checkpoint.ts";
import { flipBit, followProof, hashLeaf, type Inclusion, maxWholeLeaves } from "./merkle.ts";
import { type LogHead, nameRange, type Proved } from "./tree.ts";
import { TreeView } from "./tree-view.tsx";

const { listLogs, getCheckpoint, getTile, getInclusionProof } = LogService.method;
const { registerNode, addBlock } = BlockchainService.method;
const logs = ["blockchain", "audit"] as const;
/** Blocks that the story adds, so that a new log is not empty. */
const addedBlocks = 6;
const hashBytes = 32;

async function fetchCheckpoint({ call }: Caller, log: string): Promise<Checkpoint> {
  const listed = await call(listLogs, {}, withoutToken);
  const { checkpoint } = await call(getCheckpoint, { log }, withoutToken);
  const keys = listed.logs.find((one) => one.log === log)?.verifierKeys ?? [];
  return readCheckpoint(checkpoint?.data ?? new Uint8Array(), keys);
}

const growing = step({
  title: "Add entries",
  action: "Add six blocks",
  why: "Each block of the chain is a leaf of the log “blockchain”. The server signs at most one root per second.",
  run: async (caller) => {
    const { validatorAddress } = await caller.call(registerNode, { name: "Log" });
    let lastIndex = 0;
    for (let at = 1; at <= addedBlocks; at += 1) {
      const { block } = await caller.call(addBlock, { data: toUtf8(`Entry ${at}`), validatorAddress });
      lastIndex = block?.index ?? 0;
    }
    let size = 0;
    await waitUntil(
      async () => {
        size = (await fetchCheckpoint(caller, "blockchain")).size;
        return size > lastIndex;
      },
      "CHECKPOINT_LATE",
      "No checkpoint covers the new blocks yet. Try again.",
    );
    return { count: addedBlocks, size };
  },
  says: ({ count, size }) =>
    `${formatNumber(count)} blocks were added. The log has ${formatNumber(size)} entries.`,
});

export const reading = step({
  title: "Read the signed root",
  action: "Read",
  why: `A checkpoint names the log, the number of entries and the root. Everyone gets the same one. Here the
    keys come from the server; a real auditor gets them from a different source.`,
  fields: { log: choiceField("Log", logs[0], logs) },
  plan: ({ log }) => planCall(getCheckpoint, { log }, withoutToken),
  run: async (caller, { log }): Promise<LogHead> => {
    const checkpoint = await fetchCheckpoint(caller, log);
    const { size } = checkpoint;
    if (size < 1) throw new Failure("LOG_EMPTY", "BROWSER", "This log has no entries yet.");
    if (size > maxWholeLeaves) return { log, checkpoint, leafHashes: [] };
    // c2sp.org/tlog-tiles: the partial tile on level 0 contains the leaf hashes.
    const { tile } = await caller.call(getTile, { log, path: `0/000.p/${size}` }, withoutToken);
    const bytes = tile?.data ?? new Uint8Array();
    const leafHashes = Array.from({ length: size }, (_none, at) =>
      bytes.slice(at * hashBytes, (at + 1) * hashBytes),
    );
    return { log, checkpoint, leafHashes };
  },
  says: ({ checkpoint }) =>
    sayExpected(
      checkpoint.isSigned,
      `The log has ${formatNumber(checkpoint.size)} entries, and its root is signed with ML-DSA-65.`,
      "The checkpoint's signature is not valid",
    ),
  shows: ({ checkpoint }) => [
    facts({ Log: code(checkpoint.origin) }),
    evidence("Root and signature", bytes("Root", checkpoint.root), bytes("Signature", checkpoint.signature)),
    checks(reportBrowser("the log's signature over the checkpoint", checkpoint.isSigned)),
    verifiedBy("ML-DSA-65"),
  ],
});

const leaf = numberField("Leaf", "1");

/** Computes the root from a proof. */
async function checkProof({ checkpoint, leafHashes }: LogHead, inclusion: Inclusion): Promise<Proved> {
  const nodes = await followProof(inclusion);
  const root = nodes.at(-1)?.hash ?? new Uint8Array();
  const known = leafHashes[inclusion.index];
  const isKnownLeaf = known === undefined || areEqual(known, await hashLeaf(inclusion.leaf));
  return { inclusion, nodes, isInTree: areEqual(root, checkpoint.root) && isKnownLeaf };
}

export const proving = step({
  title: "Prove that an entry is in the log",
  action: "Get and check the proof",
  why: `The proof has one hash per level: the sibling's. A log with a million entries needs 20 hashes, 640
    bytes.`,
  fields: { leaf },
  after: { reading },
  run: async ({ call }, { reading: head, leaf }) => {
    const index = parseLeaf(leaf);
    const { log, checkpoint } = head;
    const { size } = checkpoint;
    const proof = await call(getInclusionProof, { log, leafIndex: index, treeSize: size }, withoutToken);
    // Index and size come from the request, not from the answer.
    return checkProof(head, { index, size, leaf: proof.leaf, hashes: proof.hashes });
  },
  says: ({ inclusion, isInTree }) =>
    sayExpected(
      isInTree,
      `With ${formatNumber(inclusion.hashes.length)} hashes, your browser gets from leaf ${formatNumber(inclusion.index)} to the signed root.`,
      "The proof does not lead to the signed root",
    ),
  shows: showProof,
});

export const breaking = step({
  title: "Flip one bit",
  action: "Flip and recompute",
  why: "Nothing is sent. Your browser flips a bit in its copy and recomputes the path to the root.",
  fields: { place: choiceField("Where (0: the leaf; 1 and up: a proof hash)", "0", listPlaces) },
  after: { reading, proving },
  run: (_caller, { reading: head, proving: { inclusion }, place }) =>
    checkProof(head, flipBit(inclusion, Math.min(Number(place), inclusion.hashes.length))),
  says: ({ isInTree }) =>
    sayExpected(
      !isInTree,
      "The computed root differs from the signed one: every hash above the flipped bit changes.",
      "The root is still the same",
    ),
  shows: showProof,
});

function parseLeaf(text: string): number {
  return Math.max(0, Number.parseInt(text, 10) || 0);
}

/** The leaf and each hash of the proof. */
function listPlaces({ read }: StoryState): readonly string[] {
  const count = (read(proving)?.inclusion.hashes.length ?? 0) + 1;
  return Array.from({ length: count }, (_none, at) => String(at));
}

function showProof({ inclusion, nodes, isInTree }: Proved) {
  return [
    evidence(
      "The leaf, and the hashes",
      bytes("Leaf data", inclusion.leaf),
      nodes.map((node) =>
        bytes(`${node.source === "given" ? "Given" : "Computed"}: ${nameRange(node)}`, node.hash),
      ),
    ),
    checks(reportEqual("the computed root, compared with the signed one", isInTree)),
  ];
}

/** The shape of a tree, until one is read. */
const ghost: LogHead = {
  log: "",
  checkpoint: { origin: "", size: 8, root: new Uint8Array(), isSigned: false, signature: new Uint8Array() },
  leafHashes: [],
};

function showTree({ read, valueIn, fill, start }: StoryState) {
  const head = read(reading);
  if (head === undefined)
    return [
      hint("Read the signed root to see the tree here. Then select a leaf."),
      <div key="ghost" class="ghost" inert>
        <TreeView head={ghost} chosen={0} proved={undefined} broken={undefined} onChoose={() => {}} />
      </div>,
    ];
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
  lead: `A log is a Merkle tree: each node is the hash of its two children, and the server signs the root. A
    proof of a few hashes shows that an entry is in the log. Nobody can change an entry without changing the
    root.`,
  scene: { title: "The tree, computed in your browser", shows: showTree },
  steps: [...growSteps, reading, proving, breaking],
});
