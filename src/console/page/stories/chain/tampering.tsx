/** The chain is verified, and tampered with in a copy; a stranger tries to add to it. */
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Checks } from "../../parts/checks.tsx";
import { Choice, TextField } from "../../parts/fields.tsx";
import { RefusedStep } from "../../parts/steps.tsx";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { formatNumber, toUtf8 } from "../../values.ts";
import { BlockChain } from "./block-chain.tsx";
import type { CheckedBlock } from "./blocks.ts";
import { efforts } from "./forge.ts";
import {
  addAsStranger,
  type addBlocks,
  areSound,
  type ChainCopy,
  formatBlocks,
  sayTampering,
  tamperWithCopy,
  verifyChains,
} from "./steps.ts";

const { verifyChain } = BlockchainService.method;

interface TamperingProps {
  readonly adding: StepOf<typeof addBlocks>;
  readonly copy: ChainCopy;
  /** The blocks that the stream has brought. */
  readonly blocks: readonly CheckedBlock[];
}

export function Tampering({ adding, copy, blocks }: TamperingProps) {
  const form = useForm<"place" | "words" | "effort">({
    place: "",
    words: "Ada pays Eve 500",
    effort: efforts[0],
  });
  const { place, words } = form.values;
  const effort = efforts.find((name) => name === form.values.effort) ?? efforts[0];
  const places = blocks.map(({ block }) => block.index).filter((index) => index > 0);
  const index = place === "" ? (adding.value?.[0]?.block.index ?? places[0] ?? 0) : Number(place);

  const verifying = useStep((caller) => verifyChains(caller, copy), [adding]);
  const tampering = useStep(
    (caller) => tamperWithCopy(caller, copy, { index, data: toUtf8(words), effort }),
    [adding],
  );
  const intruding = useStep((caller) => addAsStranger(caller, words));

  return (
    <>
      <Verification step={verifying} />
      <Step
        step={tampering}
        title="Tamper with a block in your copy"
        action="Tamper"
        plan={planCall(verifyChain, {})}
        fields={
          <>
            {places.length > 0 && (
              <Choice
                label="Block"
                options={places.map(String)}
                {...form.bind("place")}
                value={String(index)}
              />
            )}
            <TextField label="New content" {...form.bind("words")} />
            <Choice label="The forger" options={efforts} {...form.bind("effort")} />
          </>
        }
        outcome={({ index: changed, checked, server }) => sayTampering(changed, checked, server)}
        result={({ index: changed, checked, server }) => (
          <>
            <BlockChain
              label="Your changed copy"
              blocks={checked.filter(({ block }) => block.index >= changed - 1)}
            />
            <Checks
              checks={[
                reportBrowser("your copy", areSound(checked)),
                reportServer(`its own chain, ${formatBlocks(server.blocksChecked)}`, server.valid),
              ]}
            />
          </>
        )}
      >
        <p>
          A forger has a copy of the chain and unlimited time. Choose the forger's steps. Each attempt leaves
          a trace: the hash, the link, the signature or the signer is wrong. The chain of the server does not
          change.
        </p>
      </Step>
      <RefusedStep step={intruding} title="Add a block as a stranger" action="Try">
        <p>
          The forger's key pair is valid, but no validator has its address. Therefore the server does not
          append the block.
        </p>
      </RefusedStep>
    </>
  );
}

function Verification({ step }: { readonly step: StepOf<typeof verifyChains> }) {
  return (
    <Step
      step={step}
      title="Verify the chain, on both sides"
      action="Verify"
      plan={planCall(verifyChain, {})}
      outcome={({ server, checked, areSigned }) =>
        sayExpected(
          server.valid && areSound(checked) && areSigned,
          `The server checked ${formatBlocks(server.blocksChecked)}, your browser the ${formatNumber(checked.length)} that it has. All are valid.`,
          "The sides do not both find that the chain holds",
        )
      }
      result={({ server, checked, validSignatures, areSigned }) => (
        <>
          <Checks
            checks={[
              reportServer("every hash, link and signature, from genesis on", server.valid),
              reportBrowser(`${formatBlocks(checked.length)}: hashes and links`, areSound(checked)),
              reportBrowser(`signatures of ${formatBlocks(validSignatures)} by your validators`, areSigned),
            ]}
          />
          <p class="hint">
            Your browser uses {browserLibrary} and the public keys that the server lists. Each key matches its
            address.
          </p>
        </>
      )}
    >
      <p>The server reads its chain from disk. Your browser uses the copy from the stream.</p>
    </Step>
  );
}
