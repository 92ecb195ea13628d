/** A proposal: three signers create a wallet, two of them sign, a stranger cannot, and it executes once. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { reportEqual, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { TextField } from "../../parts/fields.tsx";
import { settings } from "../../settings.ts";
import { Step, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { SignerList } from "./signatures.tsx";
import { Signing } from "./signing.tsx";
import { foundWallet, gatherSigners, propose, threshold } from "./steps.ts";

export function Page() {
  const form = useForm({ title: "Buy a new roof", text: "Pay 40,000 to the roofer" });
  const gathering = useStep((caller) => gatherSigners(caller, settings.services.has(KmsService.typeName)));
  const founding = useStep(foundWallet, [gathering]);
  const proposing = useStep((caller, wallet) => propose(caller, wallet, form.values), [founding]);

  return (
    <Story
      title="Governance"
      lead="A wallet belongs to three, and acts when two of them sign. Each signs with ML-DSA-65 what the proposal says, to the letter, so nobody can put their signature under another one."
    >
      <Step
        step={gathering}
        title="Three signers make their keys"
        action="Make three keys"
        outcome={({ you, grace, alan }) =>
          `Your key is ${you.place}, Grace's ${grace.place}, Alan's ${alan.place}.`
        }
        result={({ you, all }) => (
          <>
            <Bytes label="Your public key" value={you.publicKey} />
            <SignerList signers={all} />
          </>
        )}
      >
        <p>
          Your secret key is made here and stays in this page. Grace and Alan have theirs in the key service
          if it runs, and use them by calling it. A signer's address is the beginning of the SHA-256 of the
          public key.
        </p>
      </Step>
      <Step
        step={founding}
        title="They found a wallet"
        action="Found the wallet"
        outcome={({ walletId, isSame }) =>
          sayExpected(
            isSame,
            `The wallet is ${walletId}. It takes ${threshold} of 3 signatures.`,
            "The wallet has other signers than these three",
          )
        }
        result={({ isSame }) => (
          <Checks checks={[reportEqual("the signers' addresses, against those of their keys", isSame)]} />
        )}
      >
        <p>The server gets the three public keys, and no secret one. It could not sign for any of them.</p>
      </Step>
      <Step
        step={proposing}
        title="Somebody makes a proposal"
        action="Propose"
        fields={
          <>
            <TextField label="Title" {...form.bind("title")} />
            <TextField label="What is proposed" {...form.bind("text")} />
          </>
        }
        outcome={({ proposalId, isSame }) =>
          sayExpected(
            isSame,
            `It is ${proposalId}, and waits for signatures for one hour.`,
            "The server took down something else than you proposed",
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
          What is signed is the hash of a text with everything that matters in it: the wallet, the content,
          how many must sign, and until when. Your browser writes that text from what you asked for, not from
          what the server says you did, and compares the hashes.
        </p>
      </Step>
      <Signing gathering={gathering} proposing={proposing} />
    </Story>
  );
}
