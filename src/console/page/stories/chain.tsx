/** A chain of blocks: it grows as a stream, is checked in the browser, and is tampered with in a copy. */
import { useRef, useState } from "preact/hooks";
import { type Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { browserLibrary, loadSigner } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { classicalSignatures } from "../classical.ts";
import { Failure } from "../failure.ts";
import { fromHex } from "../hex.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { Calls } from "../parts/call-view.tsx";
import { Checks, equality } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Choice, TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { deriveAddress, makeSigningKey } from "../signing-key.ts";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { useStream } from "../stream.ts";
import { formatBytes, formatNumber, toUtf8 } from "../values.ts";
import { createArrivals } from "./chain/arrivals.ts";
import { BlockChain } from "./chain/block-chain.tsx";
import { type CheckedBlock, checkBlock, checkBlocks, hashBlock, validatorAlgorithm } from "./chain/blocks.ts";
import { type Effort, efforts, forgeBlocks } from "./chain/forge.ts";

const { registerNode, addBlock, getChain, listValidators, verifyChain, watchBlocks } =
  BlockchainService.method;
/** So many blocks of before are shown when the watching begins. */
const earlierBlocks = 2;
const arrivalTimeoutMs = 10_000;

export function Page() {
  const [name, setName] = useState("Validator 1");
  const [entries, setEntries] = useState(["Ada pays Grace 5", "Grace pays Alan 3", "Alan pays Ada 1"]);
  const [place, setPlace] = useState("");
  const [words, setWords] = useState("Ada pays Eve 500");
  const [effort, setEffort] = useState<Effort>(efforts[0]);
  const stream = useStream<CheckedBlock>();
  // What the browser holds beside what it shows: the keys of validators, and its copy of the chain.
  const validators = useRef(new Map<string, Uint8Array | undefined>()).current;
  const copy = useRef<readonly CheckedBlock[]>([]);
  const arrivals = useRef(createArrivals()).current;

  const registering = useStep(async ({ call }) => {
    const { validatorAddress, publicKey } = await call(registerNode, { name });
    const computed = await deriveAddress(publicKey);
    // An address that is not the key's would let another key sign in its name.
    if (computed === validatorAddress) validators.set(validatorAddress, publicKey);
    return { validatorAddress, publicKey, computed };
  });
  const watching = useStep(async ({ call }) => {
    const { length } = await call(getChain, { pageSize: 1 });
    const { validators: listed } = await call(listValidators, {});
    for (const { validatorAddress, publicKey } of listed)
      if ((await deriveAddress(publicKey)) === validatorAddress) validators.set(validatorAddress, publicKey);
    const fromIndex = Math.max(0, length - earlierBlocks);
    copy.current = [];
    arrivals.reset();
    stream.open(watchBlocks, { fromIndex }, async ({ block }, before) => {
      const received = requireBlock(block);
      // Of who was registered since, the page has the address only.
      const { validatorAddress } = received;
      if (!validators.has(validatorAddress)) validators.set(validatorAddress, undefined);
      const checked = await checkBlock(received, before.at(-1), validators);
      copy.current = [...before, checked];
      arrivals.note(received.index);
      return checked;
    });
    return { length, fromIndex };
  });
  const adding = useStep(
    async ({ call }) => {
      const { validatorAddress, publicKey } = requireResult(registering);
      const signer = await loadSigner(validatorAlgorithm);
      const added = [];
      for (const entry of entries) {
        const { block: answered } = await call(addBlock, { data: toUtf8(entry), validatorAddress });
        const block = requireBlock(answered);
        const isHashed = (await hashBlock(block)) === block.blockHash;
        const isSigned = signer.verify(block.signature, fromHex(block.blockHash), publicKey);
        added.push({ block, isHashed, isSigned });
      }
      const last = added.at(-1)?.block.index ?? 0;
      if (await arrivals.reach(last, arrivalTimeoutMs)) return added;
      throw new Failure("STREAM_SILENT", "UNAVAILABLE", "The stream did not bring the blocks. Watch again.");
    },
    [registering, watching],
  );
  const verifying = useStep(
    async ({ call }) => {
      const server = await call(verifyChain, {});
      const checked = await checkBlocks(
        copy.current.map(({ block }) => block),
        validators,
      );
      const signatures = checked.map(({ signature }) => signature);
      const areSigned = signatures.includes("valid") && !signatures.includes("not valid");
      return { server, checked, areSigned };
    },
    [adding],
  );
  const tampering = useStep(
    async ({ call }) => {
      const index = chosenIndex(place, requireResult(adding)[0]?.block.index ?? 0);
      const blocks = copy.current.map(({ block }) => block);
      const forged = await forgeBlocks(blocks, { index, data: toUtf8(words), effort });
      const checked = await checkBlocks(forged, validators);
      return { index, checked, server: await call(verifyChain, {}) };
    },
    [adding],
  );
  const intruding = useStep(async ({ callRefused }) => {
    const { publicKey } = await makeSigningKey(validatorAlgorithm);
    const validatorAddress = await deriveAddress(publicKey);
    return callRefused(addBlock, { data: toUtf8(words), validatorAddress });
  });

  const tamperable = stream.items.map(({ block }) => block.index).filter((index) => index > 0);
  return (
    <Story
      title="Chain of blocks"
      lead="Each block holds the hash of the one before it, and a validator signs each hash with ML-DSA-65. So nobody can change a block without changing all that follow, and nobody but the validators can sign those anew."
    >
      <Step
        step={registering}
        title="Register a validator"
        action="Register"
        plan={planCall(registerNode, { name })}
        outcome={({ publicKey }) =>
          `There is a validator, with a public key of ${formatBytes(publicKey.length)}.`
        }
        result={({ validatorAddress, publicKey, computed }) => (
          <>
            <Facts facts={{ Address: <code>{validatorAddress}</code> }} />
            <Bytes label="Public key" value={publicKey} />
            <Checks
              checks={[equality("the address is the hash of the public key", computed === validatorAddress)]}
            />
          </>
        )}
      >
        <p>
          The server makes a key pair and keeps the secret half sealed. Keep the public half: the chain holds
          only the address, which is made of it, so nobody can put another key in its place.
        </p>
        <div class="fields">
          <TextField label="Name for people" value={name} onChange={setName} />
        </div>
      </Step>
      <Step
        step={watching}
        title="Watch the chain"
        action="Watch"
        plan={planCall(watchBlocks, { fromIndex: 0 })}
        outcome={({ length, fromIndex }) =>
          `The chain has ${formatCount(length)}. You see it from block ${formatNumber(fromIndex)} on; new ones are drawn as they come.`
        }
        result={({ fromIndex }) => (
          <>
            <BlockChain label="The chain, as it grows" blocks={stream.items} />
            <p class="hint" role="status">
              {stream.status === "closed" || stream.status === "failed"
                ? "The stream has ended."
                : `${formatCount(stream.items.length)} came, ${formatNumber(stream.items.filter(({ holds }) => !holds).length)} do not hold.`}
            </p>
            {stream.failure && <FailureNote failure={stream.failure} />}
            {stream.status === "open" && (
              <p>
                <button type="button" onClick={stream.close}>
                  Stop watching
                </button>
              </p>
            )}
            <Calls calls={[planCall(watchBlocks, { fromIndex })]} />
          </>
        )}
      >
        <p>
          Blocks come as a stream, each once and in order. For each, your browser computes the hash again,
          compares the link, and verifies the signature if it knows the validator's key. The bars draw a hash:
          those of “before” look like those of the block before.
        </p>
      </Step>
      <Step
        step={adding}
        title="Add blocks"
        action="Add three blocks"
        outcome={(added) =>
          added.every(({ isHashed, isSigned }) => isHashed && isSigned)
            ? `Blocks ${added.map(({ block }) => formatNumber(block.index)).join(", ")} were added, and came by the stream.`
            : "The server added a block whose hash or signature is not right, which should not be."
        }
        result={(added) => (
          <>
            <Checks
              checks={added.flatMap(({ block: { index }, isHashed, isSigned }) => [
                equality(`the hash of block ${formatNumber(index)}`, isHashed),
                {
                  by: "browser" as const,
                  claim: `the validator's signature of block ${formatNumber(index)}`,
                  holds: isSigned,
                },
              ])}
            />
            <SizeChart
              title="Parts of a block, and classical signatures, bytes"
              rows={[
                { label: "Your data", bytes: added[0]?.block.data.length ?? 0 },
                { label: "Hashes and the rest", bytes: 32 + 68 },
                ...classicalSignatures,
                { label: validatorAlgorithm, bytes: added[0]?.block.signature.length ?? 0 },
              ]}
            />
          </>
        )}
      >
        <p>
          The server puts each behind the newest block, hashes it, and has your validator sign the 32 bytes of
          the hash.
        </p>
        <div class="fields">
          {entries.map((entry, at) => (
            <TextField
              // The fields stay where they are.
              key={`entry ${at}`}
              label={`Block ${["one", "two", "three"][at]}`}
              value={entry}
              onChange={(text) => setEntries(entries.with(at, text))}
            />
          ))}
        </div>
      </Step>
      <Step
        step={verifying}
        title="Verify the chain, on both sides"
        action="Verify"
        plan={planCall(verifyChain, {})}
        outcome={({ server, checked, areSigned }) =>
          server.valid && isSound(checked) && areSigned
            ? `The server checked ${formatCount(server.blocksChecked)}, your browser the ${formatNumber(checked.length)} that it has. All hold.`
            : "The sides do not both find that the chain holds, which should not be."
        }
        result={({ server, checked, areSigned }) => (
          <>
            <Checks
              checks={[
                {
                  by: "server",
                  claim: "every hash, link and signature, from genesis on",
                  holds: server.valid,
                },
                {
                  by: "browser",
                  claim: `${formatCount(checked.length)}: hashes and links`,
                  holds: isSound(checked),
                },
                {
                  by: "browser",
                  claim: `signatures of ${formatCount(checked.filter(({ signature }) => signature === "valid").length)} by your validators`,
                  holds: areSigned,
                },
              ]}
            />
            <p class="hint">
              Your browser uses {browserLibrary} and the public keys that the server lists: each is the one of
              its address.
            </p>
          </>
        )}
      >
        <p>The server reads its chain from the disk. Your browser takes the copy that the stream brought.</p>
      </Step>
      <Step
        step={tampering}
        title="Tamper with a block in your copy"
        action="Tamper"
        plan={planCall(verifyChain, {})}
        outcome={({ index, checked, server }) => sayTampering(index, checked, server.valid)}
        result={({ index, checked, server }) => (
          <>
            <BlockChain
              label="Your copy, tampered with"
              blocks={checked.filter(({ block }) => block.index >= index - 1)}
            />
            <Checks
              checks={[
                { by: "browser", claim: "your copy", holds: isSound(checked) },
                {
                  by: "server",
                  claim: `its own chain, ${formatCount(server.blocksChecked)}`,
                  holds: server.valid,
                },
              ]}
            />
          </>
        )}
      >
        <p>
          A forger has a copy of the chain, and time. Choose how far they go. Whatever they do, something does
          not fit: the hash, the link, the signature, or who signed. The server's chain is not touched.
        </p>
        <div class="fields">
          {tamperable.length > 0 && (
            <Choice
              label="Block"
              value={String(chosenIndex(place, adding.value?.[0]?.block.index ?? tamperable[0] ?? 0))}
              onChange={setPlace}
              options={tamperable.map(String)}
            />
          )}
          <TextField label="What it is to say" value={words} onChange={setWords} />
          <Choice
            label="The forger"
            value={effort}
            onChange={(value) => setEffort(efforts.find((one) => one === value) ?? efforts[0])}
            options={efforts}
          />
        </div>
      </Step>
      <Step
        step={intruding}
        title="Add a block as a stranger"
        action="Try"
        outcome={({ reason }) => `The server refuses the call: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>
          The forger's key pair is as good as any other. But no validator has its address, so the server
          appends nothing in its name.
        </p>
      </Step>
    </Story>
  );
}

function requireBlock(block: Block | undefined): Block {
  if (block === undefined) throw new Error("the server sent a message without a block");
  return block;
}

function chosenIndex(place: string, fallback: number): number {
  return place === "" ? fallback : Number(place);
}

function isSound(blocks: readonly CheckedBlock[]): boolean {
  return blocks.every(({ holds }) => holds);
}

function formatCount(blocks: number): string {
  return `${formatNumber(blocks)} ${blocks === 1 ? "block" : "blocks"}`;
}

function sayTampering(index: number, checked: readonly CheckedBlock[], isServerSound: boolean): string {
  const bad = checked.filter(({ holds }) => !holds);
  const [first] = bad;
  if (first === undefined) return "The copy still holds: nothing in it was changed.";
  const rest = bad.length === 1 ? "" : ` and the ${formatNumber(bad.length - 1)} after it`;
  const server = isServerSound ? "The server's chain holds." : "The server's chain does not hold, either.";
  return `You changed block ${formatNumber(index)}: in your copy, block ${formatNumber(first.block.index)}${rest} turned red, with ${first.fault}. ${server}`;
}
