/** A token: what its creator signed, who had it, and what shows when somebody changes it. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { NftService, type TokenTransfer } from "#gen/nft/nft_service_pb.ts";
import { browserLibrary, loadSigner } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { classicalSignatures } from "../classical.ts";
import { fromHex, shortHex } from "../hex.ts";
import { ByteChange, Bytes } from "../parts/bytes-view.tsx";
import { bothSides, Checks, equality } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { NumberField, TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { deriveAddress, makeSigningKey } from "../signing-key.ts";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { formatBytes, formatNumber, fromUtf8, toHex } from "../values.ts";
import { canonicalize, changeLetter, hashMetadata, isUnbroken } from "./provenance/metadata.ts";

const { mint, transfer, verify, getToken, getHistory } = NftService.method;
const algorithm = "ML-DSA-65";
const claim = "the creator's signature over the metadata hash";

export function Page() {
  const [name, setName] = useState("Evening at the lake");
  const [description, setDescription] = useState("Oil on canvas, 60 × 80 cm");
  const [artworkUri, setArtworkUri] = useState("https://gallery.example/evening.jpg");
  const [place, setPlace] = useState("0");

  const minting = useStep(async ({ call }) => {
    const metadata = { name, description, artworkUri };
    const token = await call(mint, metadata);
    const hash = await hashMetadata(metadata);
    const signer = await loadSigner(algorithm);
    return {
      metadata,
      token,
      isHashEqual: toHex(hash) === token.metadataHash,
      isSigned: signer.verify(token.signature, hash, token.creatorPublicKey),
      isAddressEqual: (await deriveAddress(token.creatorPublicKey)) === token.creatorAddress,
    };
  });
  const transferring = useStep(
    async ({ call }) => {
      const { token } = requireResult(minting);
      const { tokenId, creatorAddress } = token;
      const [first, second] = [await newAddress(), await newAddress()];
      await call(transfer, { tokenId, fromOwner: creatorAddress, newOwner: first });
      const { currentOwner } = await call(transfer, { tokenId, fromOwner: first, newOwner: second });
      return { owners: [creatorAddress, first, second], currentOwner };
    },
    [minting],
  );
  const reselling = useStep(
    async ({ callRefused }) => {
      const { tokenId, creatorAddress } = requireResult(minting).token;
      return callRefused(transfer, { tokenId, fromOwner: creatorAddress, newOwner: await newAddress() });
    },
    [minting, transferring],
  );
  const tracing = useStep(
    async ({ call }) => {
      const { tokenId, creatorAddress, creatorPublicKey, signature } = requireResult(minting).token;
      const { history, totalSize } = await call(getHistory, { tokenId });
      const token = await call(getToken, { tokenId });
      const { valid } = await call(verify, { tokenId });
      const hash = await hashMetadata(token.metadata ?? { name: "", description: "", artworkUri: "" });
      const signer = await loadSigner(algorithm);
      return {
        history,
        owner: token.currentOwner,
        valid,
        isWhole: history.length === totalSize && isUnbroken(creatorAddress, history, token.currentOwner),
        // With what was kept from the minting, not with what the server says now.
        isSigned: signer.verify(signature, hash, creatorPublicKey),
      };
    },
    [minting, transferring],
  );
  const altering = useStep(
    async ({ call }) => {
      const { metadata, token } = requireResult(minting);
      const copy = { ...metadata, name: changeLetter(metadata.name, Math.trunc(Number(place)) || 0) };
      const [before, after] = [canonicalize(metadata), canonicalize(copy)];
      const hash = await hashMetadata(copy);
      const { signature: creatorSignature, creatorPublicKey } = token;
      const answer = await call(verify, { metadataHash: toHex(hash), creatorSignature, creatorPublicKey });
      const signer = await loadSigner(algorithm);
      return {
        copy,
        before,
        after,
        index: before.findIndex((byte, at) => byte !== after[at]),
        hash,
        original: fromHex(token.metadataHash),
        answer,
        validHere: signer.verify(creatorSignature, hash, creatorPublicKey),
      };
    },
    [minting],
  );
  const forging = useStep(
    async ({ call }) => {
      const { metadata, token } = requireResult(minting);
      const forged = await call(mint, metadata);
      const { metadataHash, signature: creatorSignature, creatorPublicKey } = forged;
      const own = await call(verify, { metadataHash, creatorSignature, creatorPublicKey });
      const swapped = await call(verify, {
        metadataHash,
        creatorSignature,
        creatorPublicKey: token.creatorPublicKey,
      });
      const signer = await loadSigner(algorithm);
      const hash = fromHex(metadataHash);
      return {
        forged,
        creatorAddress: token.creatorAddress,
        isSameHash: metadataHash === token.metadataHash,
        own: own.valid,
        ownHere: signer.verify(creatorSignature, hash, creatorPublicKey),
        swapped: swapped.valid,
        swappedHere: signer.verify(creatorSignature, hash, token.creatorPublicKey),
      };
    },
    [minting],
  );

  return (
    <Story
      title="Token and provenance"
      lead="A token says what a work is, signed by its creator, and who has owned it. Its creator's signature is over a hash of the words, so not one letter can change; its history leads from the creator to the owner of today."
    >
      <Step
        step={minting}
        title="Mint a token"
        action="Mint"
        plan={planCall(mint, { name, description, artworkUri })}
        outcome={({ token, isHashEqual, isSigned, isAddressEqual }) =>
          isHashEqual && isSigned && isAddressEqual
            ? `The token is there, signed by its creator with ${formatBytes(token.signature.length)}.`
            : "Your browser finds that the token is not as it should be."
        }
        result={({ metadata, token, isHashEqual, isSigned, isAddressEqual }) => (
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
                equality("the hash of the canonical JSON", isHashEqual),
                { by: "browser", claim, holds: isSigned },
                equality("the creator's address is the hash of the public key", isAddressEqual),
              ]}
            />
            <p class="hint">Your browser uses {browserLibrary}.</p>
            <SizeChart
              title="Signature, bytes"
              rows={[...classicalSignatures, { label: algorithm, bytes: token.signature.length }]}
            />
          </>
        )}
      >
        <p>
          The server makes a key pair for the creator, signs the 32 bytes of the metadata hash, and forgets
          the secret half. Equal words are to have equal hashes, so they are written in the canonical form of
          RFC 8785: sorted, and without spaces.
        </p>
        <div class="fields">
          <TextField label="Name" value={name} onChange={setName} />
          <TextField label="Description" value={description} onChange={setDescription} />
          <TextField label="Artwork" value={artworkUri} onChange={setArtworkUri} />
        </div>
      </Step>
      <Step
        step={transferring}
        title="Give it to another, and on"
        action="Transfer twice"
        outcome={({ owners, currentOwner }) =>
          currentOwner === owners[2]
            ? `The token went from its creator to a second owner and on to a third, ${shortHex(currentOwner)}.`
            : "The token is not where it was to go, which should not be."
        }
        result={({ owners }) => (
          <Facts
            facts={Object.fromEntries(
              owners.map((address, at) => [
                ["Creator", "Second owner", "Third owner"][at] ?? "",
                <code key={address}>{address}</code>,
              ]),
            )}
          />
        )}
      >
        <p>
          The new owners' addresses are those of key pairs that your browser makes. Each transfer names who
          owns the token before it, so that of two that race only one happens. The owner does not sign it: a
          server with users lets only who minted the token transfer it.
        </p>
      </Step>
      <Step
        step={reselling}
        title="Sell what was sold"
        action="Try"
        outcome={({ reason }) => `The server refuses the call: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>
          The first transfer is made once more, to somebody else: from the creator, who does not own the token
          any longer.
        </p>
      </Step>
      <Step
        step={tracing}
        title="Follow its history"
        action="Follow"
        outcome={({ history, isWhole, isSigned, valid }) =>
          isWhole && isSigned && valid
            ? `Over ${formatNumber(history.length)} transfers, from the creator to the owner of today, no step is missing.`
            : "The sides do not both find the token as it should be."
        }
        result={({ history, owner, valid, isWhole, isSigned }) => (
          <>
            <History history={history} />
            <Facts facts={{ "Owner today": <code>{owner}</code> }} />
            <Checks
              checks={[
                { by: "server", claim: "metadata, signature and history, as stored", holds: valid },
                {
                  by: "browser",
                  claim: "each owner has it from the one before",
                  holds: isWhole,
                  found: isWhole ? "unbroken" : "broken",
                },
                {
                  by: "browser",
                  claim: "the stored words, with the signature of the minting",
                  holds: isSigned,
                },
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
      <Step
        step={altering}
        title="Change one letter in a copy"
        action="Change and verify"
        outcome={({ answer, validHere }) =>
          answer.valid || validHere
            ? "One side still finds it valid, which should not be."
            : `With one letter changed, neither side finds the signature valid. The server says: ${answer.reason}.`
        }
        result={({ copy, before, after, index, hash, original, answer, validHere }) => (
          <>
            <Facts facts={{ "Name in the copy": copy.name }} />
            <ByteChange before={before} after={after} index={index} />
            <Bytes label="Hash of the words as they were minted" value={original} />
            <Bytes label="Hash of the changed words" value={hash} />
            <Checks checks={bothSides(claim, answer.valid, validHere)} />
          </>
        )}
      >
        <p>
          The copy is yours; the stored token stays as it is. One changed letter gives a hash that has nothing
          in common with the one that the creator signed. Choose a letter; counting begins at 0.
        </p>
        <div class="fields">
          <NumberField label="Letter of the name" value={place} onChange={setPlace} />
        </div>
      </Step>
      <Step
        step={forging}
        title="Mint the same words as somebody else"
        action="Forge"
        outcome={({ isSameHash, own, ownHere, swapped, swappedHere }) =>
          isSameHash && own && ownHere && !swapped && !swappedHere
            ? "The forgery is signed, too, but not by the creator: with the creator's key, neither side finds it valid."
            : "The forgery was not told apart, which should not be."
        }
        result={({ forged, creatorAddress, own, ownHere, swapped, swappedHere }) => (
          <>
            <Facts
              facts={{
                "Creator of the work": <code>{creatorAddress}</code>,
                "Creator of the forgery": <code>{forged.creatorAddress}</code>,
              }}
            />
            <Checks
              checks={[
                ...bothSides("the forger's signature, with the forger's key", own, ownHere),
                ...bothSides("the forger's signature, with the creator's key", swapped, swappedHere),
              ]}
            />
          </>
        )}
      >
        <p>
          Words can be copied, and the hash with them. What cannot be copied is the key: whoever knows the
          creator's address sees that this token is by another.
        </p>
      </Step>
    </Story>
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

/** The address of a key pair that is made here; nobody needs its secret half. */
async function newAddress(): Promise<string> {
  const { publicKey } = await makeSigningKey(algorithm);
  return deriveAddress(publicKey);
}
