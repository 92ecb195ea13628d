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
      lead="Each block holds the hash of the one before it, and a validator signs each hash with ML-DSA-65. So nobody can change a block without changing all that follow, and nobody but the validators can sign those anew."
    >
      <Step
        step={registering}
        title="Register a validator"
        action="Register"
        plan={planCall(registerNode, { name })}
        fields={<TextField label="Name for people" {...form.bind("name")} />}
        outcome={({ publicKey }) =>
          `There is a validator, with a public key of ${formatBytes(publicKey.length)}.`
        }
        result={({ validatorAddress, publicKey, isAddressEqual }) => (
          <>
            <Facts facts={{ Address: <code>{validatorAddress}</code> }} />
            <Bytes label="Public key" value={publicKey} />
            <Checks checks={[reportEqual("the address is the hash of the public key", isAddressEqual)]} />
          </>
        )}
      >
        <p>
          The server makes a key pair and keeps the secret half sealed. Keep the public half: the chain holds
          only the address, which is made of it, so nobody can put another key in its place.
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
            `Blocks ${added.map(({ block }) => formatNumber(block.index)).join(", ")} were added, and came by the stream.`,
            "The server added a block whose hash or signature is not right",
          )
        }
        result={(added) => <AddedBlocks added={added} />}
      >
        <p>
          The server puts each behind the newest block, hashes it, and has your validator sign the 32 bytes of
          the hash.
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
        `The chain has ${formatBlocks(length)}. You see it from block ${formatNumber(fromIndex)} on; new ones are drawn as they come.`
      }
      result={({ fromIndex }) => (
        <>
          <BlockChain label="The chain, as it grows" blocks={items} />
          <p class="hint" role="status">
            {status === "open"
              ? `${formatBlocks(items.length)} came, ${formatNumber(bad)} do not hold.`
              : "The stream has ended."}
          </p>
          <StreamControls stream={stream} />
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
