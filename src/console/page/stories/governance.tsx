/** A proposal: three signers found a wallet, two of them sign, a stranger can not, and it executes once. */
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { loadSigner } from "../algorithms.ts";
import type { Caller } from "../caller.ts";
import { classicalSignatures } from "../classical.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { Checks, equality } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { deriveAddress, makeSigningKey } from "../signing-key.ts";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { areEqual, toUtf8 } from "../values.ts";
import { hashProposal, type ProposalFacts, writeSigningText } from "./governance/proposal.ts";
import { Signatures, Signers } from "./governance/signatures.tsx";
import { makeBrowserSigner, makeKeptSigner, type Signer } from "./governance/signers.ts";

const { createMultisig, createProposal, signProposal, executeProposal } = DefiService.method;
const threshold = 2;
const lifetimeMs = 60 * 60 * 1000;

export function Page() {
  const [title, setTitle] = useState("Buy a new roof");
  const [text, setText] = useState("Pay 40,000 to the roofer");

  const gathering = useStep(async (caller) => {
    const you = await makeBrowserSigner("You");
    const grace = await makeKeptSigner(caller, "Grace");
    const alan = await makeKeptSigner(caller, "Alan");
    return { you, grace, alan, all: [you, grace, alan] };
  });
  const founding = useStep(
    async ({ call }) => {
      const { all } = requireResult(gathering);
      const { walletId, signers } = await call(createMultisig, {
        threshold,
        signerPublicKeys: all.map(({ publicKey }) => publicKey),
      });
      return { walletId, isSame: all.every(({ address }, at) => signers[at] === address), all };
    },
    [gathering],
  );
  const proposing = useStep(
    async ({ call }) => {
      const { walletId } = requireResult(founding);
      const order = { walletId, title, data: toUtf8(text), expiresAt: new Date(Date.now() + lifetimeMs) };
      const { proposal } = await call(createProposal, {
        ...order,
        expiresAt: timestampFromMs(order.expiresAt.getTime()),
      });
      if (proposal?.createdAt === undefined) throw new Error("the server sent no proposal");
      // All but the name and the time is what was asked for, not what the server says was asked.
      const { proposalId } = proposal;
      const facts: ProposalFacts = {
        ...order,
        threshold,
        proposalId,
        createdAt: timestampDate(proposal.createdAt),
      };
      const hash = await hashProposal(facts);
      return {
        proposalId,
        hash,
        text: writeSigningText(facts),
        isSame: areEqual(hash, proposal.signingHash),
      };
    },
    [founding],
  );
  const hurrying = useStep(
    ({ callRefused }) => callRefused(executeProposal, { proposalId: requireResult(proposing).proposalId }),
    [proposing],
  );
  const intruding = useStep(
    async ({ callRefused }) => {
      const { proposalId, hash } = requireResult(proposing);
      const { grace } = requireResult(gathering);
      const stranger = await makeSigningKey("ML-DSA-65");
      const signature = stranger.sign(hash);
      const signer = await deriveAddress(stranger.publicKey);
      const asHimself = await callRefused(signProposal, { proposalId, signer, signature });
      const asGrace = await callRefused(signProposal, { proposalId, signer: grace.address, signature });
      const verifier = await loadSigner("ML-DSA-65");
      const validHere = verifier.verify(signature, hash, grace.publicKey);
      return { asHimself, asGrace, validHere };
    },
    [gathering, proposing],
  );
  const signing = useStep(
    async (caller) => {
      const { you } = requireResult(gathering);
      const signed = await signAs(caller, you, requireResult(proposing));
      const { proposalId } = requireResult(proposing);
      const again = await caller.callRefused(signProposal, {
        proposalId,
        signer: you.address,
        signature: signed.signature,
      });
      return { ...signed, again };
    },
    [gathering, proposing, hurrying],
  );
  const joining = useStep(
    (caller) => signAs(caller, requireResult(gathering).grace, requireResult(proposing)),
    [gathering, proposing, signing],
  );
  const executing = useStep(
    async ({ call, callRefused }) => {
      const { proposalId } = requireResult(proposing);
      const { proposal, executedAt } = await call(executeProposal, { proposalId });
      const again = await callRefused(executeProposal, { proposalId });
      return { proposal, executedAt, again };
    },
    [proposing, joining],
  );

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
            <Signers signers={all} />
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
          isSame
            ? `The wallet is ${walletId}. It takes ${threshold} of 3 signatures.`
            : "The wallet has other signers than these three, which should not be."
        }
        result={({ isSame }) => (
          <Checks checks={[equality("the signers' addresses, against those of their keys", isSame)]} />
        )}
      >
        <p>The server gets the three public keys, and no secret one. It could not sign for any of them.</p>
      </Step>
      <Step
        step={proposing}
        title="Somebody makes a proposal"
        action="Propose"
        outcome={({ proposalId, isSame }) =>
          isSame
            ? `It is ${proposalId}, and waits for signatures for one hour.`
            : "The server took down something else than you proposed, which should not be."
        }
        result={({ hash, text: signed, isSame }) => (
          <>
            <h3>What is signed</h3>
            <pre class="code">{signed}</pre>
            <Bytes label="SHA-256 of it" value={hash} />
            <Checks checks={[equality("the server's hash of the proposal", isSame)]} />
          </>
        )}
      >
        <p>
          What is signed is the hash of a text with everything that matters in it: the wallet, the content,
          how many must sign, and until when. Your browser writes that text from what you asked for, not from
          what the server says you did, and compares the hashes.
        </p>
        <div class="fields">
          <TextField label="Title" value={title} onChange={setTitle} />
          <TextField label="What is proposed" value={text} onChange={setText} />
        </div>
      </Step>
      <Step
        step={hurrying}
        title="Somebody is in a hurry"
        action="Execute without signatures"
        outcome={({ reason }) => `The server refuses: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>Nobody has signed yet.</p>
      </Step>
      <Step
        step={intruding}
        title="A stranger signs"
        action="Sign as a stranger"
        outcome={({ asHimself, asGrace }) =>
          `In his own name: ${asHimself.reason}. In Grace's name: ${asGrace.reason}.`
        }
        result={({ asHimself, asGrace, validHere }) => (
          <>
            <FailureNote failure={asHimself} isExpected />
            <FailureNote failure={asGrace} isExpected />
            <Checks
              checks={[
                { by: "browser", claim: "his signature, with Grace's public key", holds: validHere },
                {
                  by: "server",
                  claim: "his signature, in Grace's name",
                  holds: asGrace.reason !== "SIGNATURE_INVALID",
                },
              ]}
            />
          </>
        )}
      >
        <p>
          He has a key of his own and signs the right hash. First he says who he is, then he says he is Grace.
        </p>
      </Step>
      <Step
        step={signing}
        title="You sign"
        action="Sign in your browser"
        outcome={({ count, again }) =>
          `The proposal has ${count} of ${threshold} signatures. Yours counts once: ${again.reason}.`
        }
        result={({ again, ...signed }) => (
          <>
            <SignatureResult {...signed} signers={requireResult(gathering).all} />
            <SizeChart
              title="Signature, bytes"
              rows={[...classicalSignatures, { label: "ML-DSA-65", bytes: signed.signature.length }]}
            />
            <FailureNote failure={again} isExpected />
          </>
        )}
      >
        <p>
          Your browser signs the hash that it computed itself, and sends the signature. Then it sends it a
          second time.
        </p>
      </Step>
      <Step
        step={joining}
        title="Grace signs"
        action="Sign as Grace"
        outcome={({ count }) => `The proposal has ${count} of ${threshold} signatures.`}
        result={(signed) => <SignatureResult {...signed} signers={requireResult(gathering).all} />}
      >
        <p>Her key signs where it is. Your browser checks her signature too, with her public key.</p>
      </Step>
      <Step
        step={executing}
        title="Execute it, once"
        action="Execute twice"
        outcome={({ proposal, again }) =>
          `The proposal is ${proposal?.proposalStatus}. A second time it is refused: ${again.reason}.`
        }
        result={({ proposal, executedAt, again }) => (
          <>
            <Facts
              facts={{
                Status: proposal?.proposalStatus,
                "Executed at": executedAt && timestampDate(executedAt).toISOString(),
              }}
            />
            <FailureNote failure={again} isExpected />
          </>
        )}
      >
        <p>
          The server verifies all signatures again as they are stored, and executes. Of callers that race, one
          does.
        </p>
      </Step>
    </Story>
  );
}

interface SignedProposal {
  readonly signature: Uint8Array;
  readonly count: number;
  readonly signedBy: readonly string[];
  readonly isCounted: boolean;
  readonly validHere: boolean;
}

/** Has a signer sign, and checks the signature here before it is sent. */
async function signAs(
  caller: Caller,
  signer: Signer,
  { proposalId, hash }: { readonly proposalId: string; readonly hash: Uint8Array },
): Promise<SignedProposal> {
  const signature = await signer.sign(caller, hash);
  const verifier = await loadSigner("ML-DSA-65");
  const validHere = verifier.verify(signature, hash, signer.publicKey);
  const { proposal } = await caller.call(signProposal, { proposalId, signer: signer.address, signature });
  const signedBy = proposal?.signedBy ?? [];
  const isCounted = signedBy.includes(signer.address);
  return { signature, count: proposal?.signatureCount ?? 0, signedBy, isCounted, validHere };
}

interface SignatureResultProps extends SignedProposal {
  readonly signers: readonly Signer[];
}

function SignatureResult({ signature, signedBy, isCounted, validHere, signers }: SignatureResultProps) {
  return (
    <>
      <Bytes label="Signature" value={signature} />
      <Checks
        checks={[
          { by: "browser", claim: "the signature over the hash", holds: validHere },
          { by: "server", claim: "the signature over the hash", holds: isCounted },
        ]}
      />
      <Signatures signers={signers} signedBy={signedBy} />
    </>
  );
}
