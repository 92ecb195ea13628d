/** A proposal: three signers create a wallet, two of them sign, a stranger cannot, and it executes once. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { reportEqual, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { LifecycleGraph } from "../../parts/diagrams/lifecycle-graph.tsx";
import { Quorum } from "../../parts/diagrams/quorum.tsx";
import { Scene } from "../../parts/diagrams/scene.tsx";
import { TextField } from "../../parts/fields.tsx";
import { settings } from "../../settings.ts";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { listBallots, proposalLifecycle, walkProposal } from "./quorum.ts";
import { SignerList } from "./signatures.tsx";
import { Signing } from "./signing.tsx";
import {
  algorithm,
  executeEarly,
  executeTwice,
  foundWallet,
  gatherSigners,
  propose,
  signAs,
  signAsStranger,
  signTwice,
  threshold,
} from "./steps.ts";

export function Page() {
  const form = useForm({ title: "Buy a new roof", text: "Pay 40,000 to the roofer" });
  const gathering = useStep((caller) => gatherSigners(caller, settings.services.has(KmsService.typeName)));
  const founding = useStep(foundWallet, [gathering]);
  const proposing = useStep((caller, wallet) => propose(caller, wallet, form.values), [founding]);

  const hurrying = useStep(executeEarly, [proposing]);
  const intruding = useStep(signAsStranger, [gathering, proposing]);
  const signing = useStep(signTwice, [gathering, proposing, hurrying]);
  const joining = useStep(
    (caller, { grace }, proposed) => signAs(caller, grace, proposed),
    [gathering, proposing, signing],
  );
  const executing = useStep(executeTwice, [proposing, joining]);
  const steps = { gathering, proposing, hurrying, intruding, signing, joining, executing };

  return (
    <Story
      title="Governance"
      lead="A wallet has three signers and acts when two of them sign. Each signer signs the exact content of the proposal with ML-DSA-65, so a signature cannot be moved to another proposal."
    >
      <Scene title="Who has signed">
        <Quorum subject={form.values.title} ballots={listBallots(steps)} threshold={threshold} />
        <LifecycleGraph
          label="States of a proposal"
          lifecycle={proposalLifecycle}
          walk={walkProposal(steps)}
        />
      </Scene>
      <Gathering step={gathering} />
      <Step
        step={founding}
        title="They create a wallet"
        action="Create the wallet"
        outcome={({ walletId, isSame }) =>
          sayExpected(
            isSame,
            `The wallet is ${walletId}. It needs ${threshold} of 3 signatures.`,
            "The wallet has other signers than these three",
          )
        }
        result={({ isSame }) => (
          <Checks
            checks={[reportEqual("the signers' addresses, compared with those of their keys", isSame)]}
          />
        )}
      >
        <p>The server gets the three public keys and no secret key. It cannot sign for any of the signers.</p>
      </Step>
      <Step
        step={proposing}
        title="A signer creates a proposal"
        action="Propose"
        fields={
          <>
            <TextField label="Title" {...form.bind("title")} />
            <TextField label="Content of the proposal" {...form.bind("text")} />
          </>
        }
        outcome={({ proposalId, isSame }) =>
          sayExpected(
            isSame,
            `It is ${proposalId}, and accepts signatures for one hour.`,
            "The server stored a different proposal",
          )
        }
        result={({ hash, text, isSame }) => (
          <>
            <h3>What is signed</h3>
            <pre class="code">{text}</pre>
            <Bytes label="SHA-256 of it" value={hash} />
            <Checks checks={[reportEqual("the server's hash of the proposal", isSame)]} />
          </>
        )}
      >
        <p>
          The signers sign the hash of a text that contains the wallet, the content, the threshold and the
          time of expiry. Your browser writes this text from your request, not from the answer of the server,
          and compares the hashes.
        </p>
      </Step>
      <Signing {...steps} signers={gathering.value?.all ?? []} />
    </Story>
  );
}

function Gathering({ step }: { readonly step: StepOf<typeof gatherSigners> }) {
  return (
    <Step
      step={step}
      title="Three signers generate their keys"
      action="Generate three keys"
      outcome={({ you, grace, alan }) =>
        `Your key is ${you.place}, Grace's ${grace.place}, Alan's ${alan.place}.`
      }
      result={({ you, all }) => (
        <>
          <Bytes label="Your public key" value={you.publicKey} publicKeyOf={algorithm} />
          <SignerList signers={all} />
        </>
      )}
    >
      <p>
        Your secret key is generated here and stays in this page. Grace and Alan have their keys in the key
        service, if it runs, and call it to sign. A signer's address is the first part of SHA-256 of the
        public key.
      </p>
    </Step>
  );
}
