/** A token: what its creator signed, who owned it, and how a change shows. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { NftService, type TokenTransfer } from "#gen/nft/nft_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { fromHex, shortHex } from "../../hex.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SignatureSizes } from "../../parts/size-chart.tsx";
import { RefusedStep } from "../../parts/steps.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, formatNumber, fromUtf8 } from "../../values.ts";
import { Forgeries } from "./forgeries.tsx";
import { canonicalize } from "./metadata.ts";
import { algorithm, type Minted, mintToken, sellAgain, traceHistory, transferTwice } from "./steps.ts";

export function Page() {
  const form = useForm({
    name: "Evening at the lake",
    description: "Oil on canvas, 60 × 80 cm",
    artworkUri: "https://gallery.example/evening.jpg",
  });
  const minting = useStep((caller) => mintToken(caller, form.values));
  return (
    <Story
      title="Token and provenance"
      lead="A token says what a work is, signed by its creator, and who has owned it. Its creator's signature is over a hash of the words, so not one letter can change; its history leads from the creator to the owner of today."
    >
      <Step
        step={minting}
        title="Mint a token"
        action="Mint"
        plan={planCall(NftService.method.mint, form.values)}
        fields={
          <>
            <TextField label="Name" {...form.bind("name")} />
            <TextField label="Description" {...form.bind("description")} />
            <TextField label="Artwork" {...form.bind("artworkUri")} />
          </>
        }
        outcome={({ token, isHashEqual, isSigned, isAddressEqual }) =>
          isHashEqual && isSigned && isAddressEqual
            ? `The token is there, signed by its creator with ${formatBytes(token.signature.length)}.`
            : "Your browser finds that the token is not as it should be."
        }
        result={(minted) => <MintedToken {...minted} />}
      >
        <p>
          The server makes a key pair for the creator, signs the 32 bytes of the metadata hash, and forgets
          the secret half. Equal words are to have equal hashes, so they are written in the canonical form of
          RFC 8785: sorted, and without spaces.
        </p>
      </Step>
      <Ownership minting={minting} />
      <Forgeries minting={minting} />
    </Story>
  );
}

function MintedToken({ metadata, token, isHashEqual, isSigned, isAddressEqual }: Minted) {
  return (
    <>
      <Facts
        facts={{
          Token: token.tokenId,
          "Creator and first owner": <code>{token.creatorAddress}</code>,
          "Canonical JSON": <code>{fromUtf8(canonicalize(metadata))}</code>,
        }}
      />
      <Bytes label="Metadata hash" value={fromHex(token.metadataHash)} />
      <Bytes label="Creator's signature" value={token.signature} />
      <Bytes label="Creator's public key" value={token.creatorPublicKey} />
      <Checks
        checks={[
          reportEqual("the hash of the canonical JSON", isHashEqual),
          reportBrowser("the creator's signature over the metadata hash", isSigned),
          reportEqual("the creator's address is the hash of the public key", isAddressEqual),
        ]}
      />
      <p class="hint">Your browser uses {browserLibrary}.</p>
      <SignatureSizes algorithm={algorithm} bytes={token.signature.length} />
    </>
  );
}

function Ownership({ minting }: { readonly minting: StepState<Minted> }) {
  const transferring = useStep(transferTwice, [minting]);
  const reselling = useStep(sellAgain, [minting, transferring]);
  const tracing = useStep(traceHistory, [minting, transferring]);
  return (
    <>
      <Step
        step={transferring}
        title="Give it to another, and on"
        action="Transfer twice"
        outcome={({ owners, currentOwner }) =>
          sayExpected(
            currentOwner === owners[2],
            `The token went from its creator to a second owner and on to a third, ${shortHex(currentOwner)}.`,
            "The token is not where it was to go",
          )
        }
        result={({ owners: [creator, second, third] }) => (
          <Facts
            facts={{
              Creator: <code>{creator}</code>,
              "Second owner": <code>{second}</code>,
              "Third owner": <code>{third}</code>,
            }}
          />
        )}
      >
        <p>
          The new owners' addresses are those of key pairs that your browser makes. Each transfer names who
          owns the token before it, so that of two that race only one happens. The owner does not sign it: a
          server with users lets only the user who minted the token transfer it.
        </p>
      </Step>
      <RefusedStep step={reselling} title="Sell what was sold" action="Try">
        <p>
          The first transfer is made once more, to somebody else: from the creator, who does not own the token
          any longer.
        </p>
      </RefusedStep>
      <Step
        step={tracing}
        title="Follow its history"
        action="Follow"
        outcome={({ history, isWhole, isSigned, valid }) =>
          isWhole && isSigned && valid
            ? `Over ${formatNumber(history.length)} transfers, from the creator to the owner of today, no step is missing.`
            : "The sides do not both find the token as it should be."
        }
        result={({ history, currentOwner, valid, isWhole, isSigned }) => (
          <>
            <History history={history} />
            <Facts facts={{ "Owner today": <code>{currentOwner}</code> }} />
            <Checks
              checks={[
                reportServer("metadata, signature and history, as stored", valid),
                reportBrowser(
                  "each owner has it from the one before",
                  isWhole,
                  isWhole ? "unbroken" : "broken",
                ),
                reportBrowser("the stored words, with the signature of the minting", isSigned),
              ]}
            />
          </>
        )}
      >
        <p>
          The signature proves the words, not the owners: the history is the server's record, and your browser
          can check only that it is without gaps and begins at the creator whom you saw.
        </p>
      </Step>
    </>
  );
}

function History({ history }: { readonly history: readonly TokenTransfer[] }) {
  return (
    <ol class="owners">
      {history.map(({ fromAddress, toAddress, timestamp }, at) => (
        <li key={`${at} ${toAddress}`}>
          <code>{shortHex(fromAddress)}</code> to <code>{shortHex(toAddress)}</code>
          {timestamp && <span class="hint"> {timestampDate(timestamp).toISOString()}</span>}
        </li>
      ))}
    </ol>
  );
}
