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
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { OwnerChain } from "../../parts/diagrams/owner-chain.tsx";
import { Scene } from "../../parts/diagrams/scene.tsx";
import { Facts } from "../../parts/facts.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SignatureSizes } from "../../parts/size-chart.tsx";
import { RefusedStep } from "../../parts/steps.tsx";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, formatNumber, fromUtf8 } from "../../values.ts";
import { Forgeries } from "./forgeries.tsx";
import { canonicalize } from "./metadata.ts";
import { drawOwners } from "./owners.ts";
import {
  algorithm,
  forgeToken,
  type Minted,
  mintToken,
  sellAgain,
  traceHistory,
  transferTwice,
} from "./steps.ts";

export function Page() {
  const form = useForm({
    name: "Evening at the lake",
    description: "Oil on canvas, 60 × 80 cm",
    artworkUri: "https://gallery.example/evening.jpg",
  });
  const minting = useStep((caller) => mintToken(caller, form.values));
  const transferring = useStep(transferTwice, [minting]);
  const reselling = useStep(sellAgain, [minting, transferring]);
  const tracing = useStep(traceHistory, [minting, transferring]);
  const forging = useStep(forgeToken, [minting]);
  const steps = { minting, transferring, reselling, tracing, forging };
  return (
    <Story
      title="Token and provenance"
      lead="A token describes a work, with the signature of its creator and the history of its owners. The signature covers a hash of the words, so no letter can change. The history leads from the creator to the current owner."
    >
      <Scene title="From owner to owner">
        <OwnerChain label="Owners" items={drawOwners(steps)} />
      </Scene>
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
            ? `The token exists, and its creator signed it with ${formatBytes(token.signature.length)}.`
            : "Your browser finds that the token is not valid."
        }
        result={(minted) => <MintedToken {...minted} />}
      >
        <p>
          The server generates a key pair for the creator, signs the 32 bytes of the metadata hash, and erases
          the secret key. Equal words must have equal hashes. Therefore they are written in the canonical form
          of RFC 8785: sorted, and without spaces.
        </p>
      </Step>
      <Ownership {...steps} />
      <Forgeries minting={minting} forging={forging} />
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
      <Evidence label="Hash, signature and public key">
        <Bytes label="Metadata hash" value={fromHex(token.metadataHash)} />
        <Bytes label="Creator's signature" value={token.signature} />
        <Bytes label="Creator's public key" value={token.creatorPublicKey} publicKeyOf={algorithm} />
      </Evidence>
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

interface OwnershipProps {
  readonly transferring: StepOf<typeof transferTwice>;
  readonly reselling: StepOf<typeof sellAgain>;
  readonly tracing: StepOf<typeof traceHistory>;
}

function Ownership({ transferring, reselling, tracing }: OwnershipProps) {
  return (
    <>
      <Step
        step={transferring}
        title="Transfer it twice"
        action="Transfer twice"
        outcome={({ owners, currentOwner }) =>
          sayExpected(
            currentOwner === owners[2],
            `The token went from its creator to a second owner and then to a third, ${shortHex(currentOwner)}.`,
            "The token does not have the expected owner",
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
          Your browser generates key pairs for the addresses of the new owners. Each transfer names the
          current owner, so that only one of two concurrent transfers succeeds. The owner does not sign a
          transfer. On a server with users, only the user who minted the token can transfer it.
        </p>
      </Step>
      <RefusedStep step={reselling} title="Transfer it again" action="Try">
        <p>
          This step repeats the first transfer with another recipient. The creator no longer owns the token.
        </p>
      </RefusedStep>
      <Step
        step={tracing}
        title="Follow its history"
        action="Follow"
        outcome={({ history, isWhole, isSigned, valid }) =>
          isWhole && isSigned && valid
            ? `Over ${formatNumber(history.length)} transfers, from the creator to the current owner, no step is missing.`
            : "The sides do not both find the token valid."
        }
        result={({ history, currentOwner, valid, isWhole, isSigned }) => (
          <>
            <History history={history} />
            <Facts facts={{ "Owner today": <code>{currentOwner}</code> }} />
            <Checks
              checks={[
                reportServer("metadata, signature and history, as stored", valid),
                reportBrowser(
                  "each owner received it from the previous owner",
                  isWhole,
                  isWhole ? "unbroken" : "broken",
                ),
                reportBrowser("the stored words, with the creator's signature", isSigned),
              ]}
            />
          </>
        )}
      >
        <p>
          The signature covers the words, not the owners. The server records the history. Your browser can
          only check that it has no gaps and begins with the known creator.
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
