/** A chain of blocks: it grows as a stream, is checked in the browser, and is tampered with in a copy. */
import { useRef } from "preact/hooks";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { classicalSignatures } from "../../classical.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Calls } from "../../parts/call-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { StreamControls } from "../../parts/stream-controls.tsx";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { type StreamState, useStream } from "../../stream.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import { BlockChain } from "./block-chain.tsx";
import { type CheckedBlock, validatorAlgorithm } from "./blocks.ts";
import { ChainExplorer } from "./chain-explorer.tsx";
import {
  addBlocks,
  createChainCopy,
  formatBlocks,
  prepareWatch,
  receiveBlock,
  registerValidator,
} from "./steps.ts";
import { Tampering } from "./tampering.tsx";

const { registerNode, watchBlocks } = BlockchainService.method;

export function Page() {
  const form = useForm({
    name: "Validator 1",
    one: "Ada pays Grace 5",
    two: "Grace pays Alan 3",
    three: "Alan pays Ada 1",
  });
  const { name, one, two, three } = form.values;
  const copy = useRef(createChainCopy()).current;
  const stream = useStream<CheckedBlock>();

  const registering = useStep((caller) => registerValidator(caller, copy, name));
  const watching = useStep(async (caller) => {
    const start = await prepareWatch(caller, copy);
    const { fromIndex } = start;
    stream.open(watchBlocks, { fromIndex }, (message, before) => receiveBlock(copy, message, before));
    return start;
  });
  const adding = useStep(
    (caller, validator) => addBlocks(caller, copy, validator, [one, two, three]),
    [registering, watching],
  );

  return (
    <Story
      title="Chain of blocks"
      lead="Each block contains the hash of the previous block, and a validator signs each hash with ML-DSA-65. A changed block therefore changes all later blocks, and only the validators can sign those again."
    >
      <ChainExplorer blocks={stream.items} validators={copy.validators} />
      <Step
        step={registering}
        title="Register a validator"
        action="Register"
        plan={planCall(registerNode, { name })}
        fields={<TextField label="Human-readable name" {...form.bind("name")} />}
        outcome={({ publicKey }) =>
          `There is a validator, with a public key of ${formatBytes(publicKey.length)}.`
        }
        result={({ validatorAddress, publicKey, isAddressEqual }) => (
          <>
            <Facts facts={{ Address: <code>{validatorAddress}</code> }} />
            <Bytes label="Public key" value={publicKey} publicKeyOf={validatorAlgorithm} />
            <Checks checks={[reportEqual("the address is the hash of the public key", isAddressEqual)]} />
          </>
        )}
      >
        <p>
          The server generates a key pair and stores the secret key sealed. Your browser stores the public
          key. The chain contains only the address, which is derived from the public key, so another key
          cannot replace it.
        </p>
      </Step>
      <Watching step={watching} stream={stream} />
      <Step
        step={adding}
        title="Add blocks"
        action="Add three blocks"
        fields={
          <>
            <TextField label="Block one" {...form.bind("one")} />
            <TextField label="Block two" {...form.bind("two")} />
            <TextField label="Block three" {...form.bind("three")} />
          </>
        }
        outcome={(added) =>
          sayExpected(
            added.every(({ isHashed, isSigned }) => isHashed && isSigned),
            `Blocks ${added.map(({ block }) => formatNumber(block.index)).join(", ")} were added, and arrived in the stream.`,
            "The server added a block whose hash or signature is not valid",
          )
        }
        result={(added) => <AddedBlocks added={added} />}
      >
        <p>
          The server appends each block to the chain and hashes it. Your validator signs the 32 bytes of the
          hash.
        </p>
      </Step>
      <Tampering adding={adding} copy={copy} blocks={stream.items} />
    </Story>
  );
}

interface WatchingProps {
  readonly step: StepOf<typeof prepareWatch>;
  readonly stream: StreamState<CheckedBlock>;
}

function Watching({ step, stream }: WatchingProps) {
  const { items, status } = stream;
  const bad = items.filter(({ holds }) => !holds).length;
  return (
    <Step
      step={step}
      title="Watch the chain"
      action="Watch"
      plan={planCall(watchBlocks, { fromIndex: 0 })}
      outcome={({ length, fromIndex }) =>
        `The chain has ${formatBlocks(length)}. You see it from block ${formatNumber(fromIndex)} on. New blocks appear as they are added.`
      }
      result={({ fromIndex }) => (
        <>
          <BlockChain label="The chain, as it grows" blocks={items} />
          <p class="hint" role="status">
            {status === "open"
              ? `${formatBlocks(items.length)} received, ${formatNumber(bad)} not valid.`
              : "The stream has ended."}
          </p>
          <StreamControls stream={stream} />
          <Calls calls={[planCall(watchBlocks, { fromIndex })]} />
        </>
      )}
    >
      <p>
        Blocks arrive as a stream, each one time and in order. For each block, your browser recomputes the
        hash, compares the link, and verifies the signature if it knows the validator's key. The bars show a
        hash. Those of “before” look like those of the previous block.
      </p>
    </Step>
  );
}

function AddedBlocks({ added }: { readonly added: Awaited<ReturnType<typeof addBlocks>> }) {
  const [first] = added;
  return (
    <>
      <Checks
        checks={added.flatMap(({ block: { index }, isHashed, isSigned }) => [
          reportEqual(`the hash of block ${formatNumber(index)}`, isHashed),
          reportBrowser(`the validator's signature of block ${formatNumber(index)}`, isSigned),
        ])}
      />
      <SizeChart
        title="Parts of a block, and classical signatures, bytes"
        rows={[
          { label: "Your data", bytes: first?.block.data.length ?? 0 },
          { label: "Hashes and the rest", bytes: 32 + 68 },
          ...classicalSignatures,
          { label: validatorAlgorithm, bytes: first?.block.signature.length ?? 0 },
        ]}
      />
    </>
  );
}
