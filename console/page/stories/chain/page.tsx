/** A chain of blocks: it grows as a stream, is checked in the browser, and is tampered with in a copy. */
import { useRef } from "preact/hooks";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { classicalSignatures } from "../../classical.ts";
import { Calls } from "../../parts/call-view.tsx";
import { Choice } from "../../parts/fields.tsx";
import { bytes, checks, code, facts, hint, showRefusal, sizes } from "../../parts/show.tsx";
import { choiceField, textField } from "../../parts/step-fields.tsx";
import { StreamControls } from "../../parts/stream-controls.tsx";
import { defineSharedStory } from "../../story.tsx";
import { type Field, type StoryState, step } from "../../story-step.ts";
import { type StreamState, useStream } from "../../stream.ts";
import { formatBytes, formatNumber, toUtf8 } from "../../values.ts";
import { BlockChain } from "./block-chain.tsx";
import { type CheckedBlock, validatorAlgorithm } from "./blocks.ts";
import { ChainExplorer } from "./chain-explorer.tsx";
import { efforts } from "./forge.ts";
import {
  addAsStranger,
  addBlocks,
  areSound,
  type ChainCopy,
  createChainCopy,
  formatBlocks,
  prepareWatch,
  receiveBlock,
  registerValidator,
  sayTampering,
  tamperWithCopy,
  verifyChains,
} from "./steps.ts";

const { registerNode, verifyChain, watchBlocks } = BlockchainService.method;

interface Chain {
  /** The browser's copy. */
  readonly copy: ChainCopy;
  /** The blocks that the stream has brought, checked by the browser. */
  readonly stream: StreamState<CheckedBlock>;
}

const registering = step({
  title: "Register a validator",
  action: "Register",
  why: `The server generates a key pair and stores the secret key sealed. Your browser stores the public key. The chain
    contains only the address, which is derived from the public key, so another key cannot replace it.`,
  fields: { name: textField("Human-readable name", "Validator 1") },
  plan: ({ name }) => planCall(registerNode, { name }),
  run: (caller, { name }, { copy }: Chain) => registerValidator(caller, copy, name),
  says: ({ publicKey }) => `There is a validator, with a public key of ${formatBytes(publicKey.length)}.`,
  shows: ({ validatorAddress, publicKey, isAddressEqual }) => [
    facts({ Address: code(validatorAddress) }),
    bytes("Public key", publicKey, validatorAlgorithm),
    checks(reportEqual("the address is the hash of the public key", isAddressEqual)),
  ],
});

const watching = step({
  title: "Watch the chain",
  action: "Watch",
  why: `Blocks arrive as a stream, each one time and in order. For each block, your browser recomputes the hash, compares
    the link, and verifies the signature if it knows the validator's key. The bars show a hash. Those of “before” look
    like those of the previous block.`,
  plan: () => planCall(watchBlocks, { fromIndex: 0 }),
  run: async (caller, _given, { copy, stream }: Chain) => {
    const start = await prepareWatch(caller, copy);
    const { fromIndex } = start;
    stream.open(watchBlocks, { fromIndex }, (message, before) => receiveBlock(copy, message, before));
    return start;
  },
  says: ({ length, fromIndex }) =>
    `The chain has ${formatBlocks(length)}. You see it from block ${formatNumber(fromIndex)} on. New blocks appear as they are added.`,
  shows: ({ fromIndex }, { shared: { stream } }: StoryState<Chain>) => {
    const { items, status } = stream;
    const bad = items.filter(({ holds }) => !holds).length;
    return (
      <>
        <p class="hint" role="status">
          {status === "open"
            ? `${formatBlocks(items.length)} received, ${formatNumber(bad)} not valid.`
            : "The stream has ended."}
        </p>
        <StreamControls stream={stream} />
        <Calls calls={[planCall(watchBlocks, { fromIndex })]} />
      </>
    );
  },
});

const adding = step({
  title: "Add blocks",
  action: "Add three blocks",
  why: `The server appends each block to the chain and hashes it. Your validator signs the 32 bytes of the hash.`,
  fields: {
    one: textField("Block one", "Ada pays Grace 5"),
    two: textField("Block two", "Grace pays Alan 3"),
    three: textField("Block three", "Alan pays Ada 1"),
  },
  after: { registering, watching },
  run: (caller, given, { copy }: Chain) =>
    addBlocks(caller, copy, given.registering, [given.one, given.two, given.three]),
  says: (added) =>
    sayExpected(
      added.every(({ isHashed, isSigned }) => isHashed && isSigned),
      `Blocks ${added.map(({ block }) => formatNumber(block.index)).join(", ")} were added, and arrived in the stream.`,
      "The server added a block whose hash or signature is not valid",
    ),
  shows: (added) => {
    const block = added[0]?.block;
    return [
      checks(
        added.flatMap(({ block: { index }, isHashed, isSigned }) => [
          reportEqual(`the hash of block ${formatNumber(index)}`, isHashed),
          reportBrowser(`the validator's signature of block ${formatNumber(index)}`, isSigned),
        ]),
      ),
      sizes("Parts of a block, and classical signatures, bytes", [
        { label: "Your data", bytes: block?.data.length ?? 0 },
        { label: "Hashes and the rest", bytes: 32 + 68 },
        ...classicalSignatures,
        { label: validatorAlgorithm, bytes: block?.signature.length ?? 0 },
      ]),
    ];
  },
});

const verifying = step({
  title: "Verify the chain, on both sides",
  action: "Verify",
  why: "The server reads its chain from disk. Your browser uses the copy from the stream.",
  after: { adding },
  plan: () => planCall(verifyChain, {}),
  run: (caller, _given, { copy }: Chain) => verifyChains(caller, copy),
  says: ({ server, checked, areSigned }) =>
    sayExpected(
      server.valid && areSound(checked) && areSigned,
      `The server checked ${formatBlocks(server.blocksChecked)}, your browser the ${formatNumber(checked.length)} that it has. All are valid.`,
      "The sides do not both find that the chain holds",
    ),
  shows: ({ server, checked, validSignatures, areSigned }) => [
    checks(
      reportServer("every hash, link and signature, from genesis on", server.valid),
      reportBrowser(`${formatBlocks(checked.length)}: hashes and links`, areSound(checked)),
      reportBrowser(`signatures of ${formatBlocks(validSignatures)} by your validators`, areSigned),
    ),
    hint(
      `Your browser uses ${browserLibrary} and the public keys that the server lists. Each key matches its address.`,
    ),
  ],
});

const words = textField("New content", "Ada pays Eve 500");

/** The block to change, of those that the stream has brought. */
const place: Field<Chain> = {
  initial: "",
  view: (bound, story) => {
    const places = listPlaces(story.shared);
    if (places.length === 0) return null;
    const value = bound.value || String(story.read(adding)?.[0]?.block.index ?? places[0]);
    return <Choice label="Block" options={places.map(String)} {...bound} value={value} />;
  },
};

function listPlaces({ stream }: Chain): readonly number[] {
  return stream.items.map(({ block }) => block.index).filter((index) => index > 0);
}

const tampering = step({
  title: "Tamper with a block in your copy",
  action: "Tamper",
  why: `A forger has a copy of the chain and unlimited time. Choose the forger's steps. Each attempt leaves a trace: the
    hash, the link, the signature or the signer is wrong. The chain of the server does not change.`,
  fields: { place, words, effort: choiceField("The forger", efforts[0], efforts) },
  after: { adding },
  plan: () => planCall(verifyChain, {}),
  run: (caller, given, chain: Chain) => {
    const first = given.adding[0]?.block.index ?? listPlaces(chain)[0] ?? 0;
    return tamperWithCopy(caller, chain.copy, {
      index: given.place === "" ? first : Number(given.place),
      data: toUtf8(given.words),
      effort: efforts.find((name) => name === given.effort) ?? efforts[0],
    });
  },
  says: ({ index, checked, server }) => sayTampering(index, checked, server),
  shows: ({ index, checked, server }) => [
    <BlockChain
      key="copy"
      label="Your changed copy"
      blocks={checked.filter(({ block }) => block.index >= index - 1)}
    />,
    checks(
      reportBrowser("your copy", areSound(checked)),
      reportServer(`its own chain, ${formatBlocks(server.blocksChecked)}`, server.valid),
    ),
  ],
});

const intruding = step({
  title: "Add a block as a stranger",
  action: "Try",
  why: `The forger's key pair is valid, but no validator has its address. Therefore the server does not append the
    block.`,
  reads: { words },
  run: (caller, given) => addAsStranger(caller, given.words),
  ...showRefusal(),
});

export const Page = defineSharedStory<Chain>({
  title: "Chain of blocks",
  lead: `Each block contains the hash of the previous block, and a validator signs each hash with ML-DSA-65. A changed
    block therefore changes all later blocks, and only the validators can sign those again.`,
  useShared: () => ({ copy: useRef(createChainCopy()).current, stream: useStream<CheckedBlock>() }),
  scene: {
    title: "The chain, and a link to break in your copy",
    shows: ({ shared: { copy, stream } }) => (
      <ChainExplorer blocks={stream.items} validators={copy.validators} />
    ),
  },
  steps: [registering, watching, adding, verifying, tampering, intruding],
});
