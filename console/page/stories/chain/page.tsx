/** A blockchain: it grows as a stream, is verified in the browser, and is tampered with in a copy. */
import { useRef } from "preact/hooks";
import { type Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { nameCode, verifyHere } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { classicalSignatures } from "../../classical.ts";
import { expectRefusal } from "../../failure.ts";
import { Calls } from "../../parts/call-view.tsx";
import { Choice } from "../../parts/fields.tsx";
import { bytes, checks, code, facts, hint, showRefusal, sizes } from "../../parts/show.tsx";
import { choiceField, textField } from "../../parts/step-fields.tsx";
import { StreamControls } from "../../parts/stream-controls.tsx";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { defineSharedStory } from "../../story.tsx";
import { type Field, type StoryState, step } from "../../story-step.ts";
import { type StreamState, useStream } from "../../stream.ts";
import { formatBytes, formatNumber, fromHex, toUtf8 } from "../../values.ts";
import { waitUntil } from "../../wait.ts";
import { BlockChain, GrowingChain } from "./block-chain.tsx";
import { type CheckedBlock, checkBlocks, faultWords, hashBlock, validatorAlgorithm } from "./blocks.ts";
import { type ChainCopy, createChainCopy, receiveBlock, requireBlock } from "./copy.ts";
import { efforts, forgeBlocks } from "./forge.ts";

const { registerNode, addBlock, getChain, listValidators, verifyChain, watchBlocks } =
  BlockchainService.method;
/** Number of earlier blocks shown when the stream starts. */
const earlierBlocks = 2;
/** Maximum blocks kept: others may add many. */
const maxBlocks = 500;

interface Chain {
  /** The browser's copy. */
  readonly copy: ChainCopy;
  /** The blocks that the stream has delivered, checked by the browser. */
  readonly stream: StreamState<CheckedBlock>;
}

export const registering = step({
  title: "Register a validator",
  action: "Register",
  why: `The server generates a key pair and stores the secret key sealed. Your browser stores the public key.
    The chain contains only the address, which is derived from the public key, so a different key cannot
    replace it.`,
  fields: { name: textField("Name", "Validator 1") },
  plan: ({ name }) => planCall(registerNode, { name }),
  run: async ({ call }, { name }, { copy }: Chain) => {
    const { validatorAddress, publicKey } = await call(registerNode, { name });
    const isAddressEqual = (await deriveAddress(publicKey)) === validatorAddress;
    // If the address did not match the key, someone else's key could sign in the validator's name.
    if (isAddressEqual) copy.validators.set(validatorAddress, publicKey);
    return { validatorAddress, publicKey, isAddressEqual };
  },
  says: ({ publicKey }) =>
    `The validator is registered; its public key has ${formatBytes(publicKey.length)}.`,
  shows: ({ validatorAddress, publicKey, isAddressEqual }) => [
    facts({ Address: code(validatorAddress) }),
    bytes("Public key", publicKey, validatorAlgorithm),
    checks(reportEqual("the address is the hash of the public key", isAddressEqual)),
  ],
});

export const watching = step({
  title: "Watch the chain",
  action: "Watch",
  why: `Blocks arrive as a stream, in order and exactly once. For each block, your browser recomputes the
    hash, compares the link, and verifies the signature if it knows the validator's key. Bars visualize each
    hash. The bars next to “before” look like the previous block's.`,
  plan: () => planCall(watchBlocks, { fromIndex: 0 }),
  run: async ({ call }, _given, { copy, stream }: Chain) => {
    const { length } = await call(getChain, { pageSize: 1 });
    const { validators } = await call(listValidators, {});
    for (const { validatorAddress, publicKey } of validators)
      if ((await deriveAddress(publicKey)) === validatorAddress)
        copy.validators.set(validatorAddress, publicKey);
    copy.blocks = [];
    const fromIndex = Math.max(0, length - earlierBlocks);
    stream.open(watchBlocks, { fromIndex }, (message, before) => receiveBlock(copy, message, before));
    return { length, fromIndex };
  },
  says: ({ length, fromIndex }) =>
    `The chain has ${formatBlocks(length)}. You see it from block ${formatNumber(fromIndex)} on. New blocks appear when they are added.`,
  shows: ({ fromIndex }, { shared: { stream } }: StoryState<Chain>) => {
    const { items, status } = stream;
    const bad = items.filter(({ holds }) => !holds).length;
    return (
      <>
        <p class="hint" role={status === "open" ? undefined : "status"}>
          {status === "open"
            ? `The newest ${formatBlocks(items.length)}: ${formatNumber(bad)} not valid.`
            : "The stream has ended."}
        </p>
        <StreamControls stream={stream} />
        <Calls calls={[planCall(watchBlocks, { fromIndex })]} />
      </>
    );
  },
});

export const adding = step({
  title: "Add blocks",
  action: "Add three blocks",
  why: `The server appends each block to the chain and hashes it. Your validator signs the 32-byte hash.`,
  fields: {
    one: textField("Block one", "Ada pays Grace 5"),
    two: textField("Block two", "Grace pays Alan 3"),
    three: textField("Block three", "Alan pays Ada 1"),
  },
  after: { registering, watching },
  run: async ({ call }, { registering: validator, one, two, three }, { copy }: Chain) => {
    const { validatorAddress, publicKey } = validator;
    const added = [];
    for (const entry of [one, two, three]) {
      const block = requireBlock((await call(addBlock, { data: toUtf8(entry), validatorAddress })).block);
      const isHashed = (await hashBlock(block)) === block.blockHash;
      const isSigned = await verifyHere(
        validatorAlgorithm,
        block.signature,
        fromHex(block.blockHash),
        publicKey,
      );
      added.push({ block, isHashed, isSigned });
    }
    const last = added.at(-1)?.block.index;
    await waitUntil(
      () => copy.blocks.some(({ block }) => block.index === last),
      "STREAM_SILENT",
      "The stream did not deliver the blocks. Watch the chain again.",
    );
    return added;
  },
  says: (added) =>
    sayExpected(
      added.every(({ isHashed, isSigned }) => isHashed && isSigned),
      `Blocks ${added.map(({ block }) => formatNumber(block.index)).join(", ")} were added and arrived in the stream.`,
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
        { label: "Hashes and other fields", bytes: 32 + 68 },
        ...classicalSignatures,
        { label: validatorAlgorithm, bytes: block?.signature.length ?? 0 },
      ]),
    ];
  },
});

function areSound(blocks: readonly CheckedBlock[]): boolean {
  return blocks.every(({ holds }) => holds);
}

function formatBlocks(count: number): string {
  return `${formatNumber(count)} ${count === 1 ? "block" : "blocks"}`;
}

function takeBlocks({ blocks }: ChainCopy): readonly Block[] {
  return blocks.map(({ block }) => block);
}

export const verifying = step({
  title: "Verify the chain, on both sides",
  action: "Verify",
  why: "The server reads its chain from disk. Your browser uses the copy from the stream.",
  after: { adding },
  plan: () => planCall(verifyChain, {}),
  run: async ({ call }, _given, { copy }: Chain) => {
    const server = await call(verifyChain, {});
    const checked = await checkBlocks(takeBlocks(copy), copy.validators);
    const signatures = checked.map(({ signature }) => signature);
    const validSignatures = signatures.filter((signature) => signature === "valid").length;
    const areSigned = validSignatures > 0 && !signatures.includes("not valid");
    return { server, checked, validSignatures, areSigned };
  },
  says: ({ server, checked, areSigned }) =>
    sayExpected(
      server.valid && areSound(checked) && areSigned,
      `The server checked ${formatBlocks(server.blocksChecked)}, and your browser the ${formatNumber(checked.length)} that it has. All are valid.`,
      "The two sides disagree about the chain",
    ),
  shows: ({ server, checked, validSignatures, areSigned }) => [
    checks(
      reportServer("every hash, link and signature, from genesis on", server.valid),
      reportBrowser(`${formatBlocks(checked.length)}: hashes and links`, areSound(checked)),
      reportBrowser(`signatures of ${formatBlocks(validSignatures)} by your validators`, areSigned),
    ),
    hint(
      `Your browser uses ${nameCode(validatorAlgorithm)}, and the public keys that the server lists. Each key matches its address.`,
    ),
  ],
});

/** The block to change, among those delivered by the stream. */
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

export const tampering = step({
  title: "Tamper with a block in your copy",
  action: "Tamper",
  why: `A forger has a copy of the chain and unlimited time. Choose how far the forger goes. Each attempt
    leaves a trace: the hash, the link, the signature or the signer is wrong. The server's chain does not
    change.`,
  fields: {
    place,
    words: textField("New content", "Ada pays Eve 500"),
    effort: choiceField("The forger", efforts[0], efforts),
  },
  after: { adding },
  plan: () => planCall(verifyChain, {}),
  run: async ({ call }, given, chain: Chain) => {
    const first = given.adding[0]?.block.index ?? listPlaces(chain)[0] ?? 0;
    const index = given.place === "" ? first : Number(given.place);
    const effort = efforts.find((name) => name === given.effort) ?? efforts[0];
    const forged = await forgeBlocks(takeBlocks(chain.copy), { index, data: toUtf8(given.words), effort });
    const checked = await checkBlocks(forged, chain.copy.validators);
    return { index, checked, server: await call(verifyChain, {}) };
  },
  says: ({ index, checked, server }) => {
    const bad = checked.filter(({ holds }) => !holds);
    const [first] = bad;
    if (first === undefined) return "The copy is still valid: nothing in it was changed.";
    const rest = bad.length === 1 ? "" : ` and the ${formatNumber(bad.length - 1)} after it`;
    const says = server.valid ? "The server's chain holds." : "The server's chain does not hold either.";
    const number = formatNumber(first.block.index);
    const why = first.fault === undefined ? "" : ` Block ${number}: ${faultWords[first.fault]}.`;
    return `You changed block ${formatNumber(index)}: in your copy, block ${number}${rest} turned red.${why} ${says}`;
  },
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

export const intruding = step({
  title: "Add a block as an outsider",
  action: "Try",
  why: `The forger's key pair is valid, but no validator has its address. Therefore the server does not append the
    block.`,
  run: async ({ call }) => {
    const { publicKey } = await makeSigningKey(validatorAlgorithm);
    const validatorAddress = await deriveAddress(publicKey);
    const data = toUtf8("Ada pays Eve 500");
    return expectRefusal(call(addBlock, { data, validatorAddress }), "VALIDATOR_NOT_FOUND");
  },
  ...showRefusal(),
});

export const Page = defineSharedStory<Chain>({
  title: "Blockchain",
  lead: `Each block contains the hash of the previous block, and a validator signs each hash with ML-DSA-65. A changed
    block therefore changes all later blocks, and only the validators can sign those again.`,
  useShared: () => ({ copy: useRef(createChainCopy()).current, stream: useStream<CheckedBlock>(maxBlocks) }),
  scene: {
    title: "The chain",
    shows: ({ shared: { stream } }) => <GrowingChain blocks={stream.items} />,
  },
  steps: [registering, watching, adding, verifying, tampering, intruding],
});
