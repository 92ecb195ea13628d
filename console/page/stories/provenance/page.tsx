/** A token: what its creator signed, who owned it, and how a change is detected. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type MintResponse, NftService, type TokenTransfer } from "#gen/nft/nft_service_pb.ts";
import { verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import {
  areBothInvalid,
  areBothValid,
  reportBoth,
  reportBrowser,
  reportEqual,
  reportServer,
  sayExpected,
  sayInvalid,
} from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { find, judge, refuse, send } from "../../parts/diagrams/sequence.ts";
import {
  bytes,
  change,
  checks,
  code,
  evidence,
  facts,
  showRefusal,
  signatureSizes,
  verifiedBy,
} from "../../parts/show.tsx";
import { numberField, textField } from "../../parts/step-fields.tsx";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { formatBytes, formatNumber, fromHex, fromUtf8, shortenId, toHex } from "../../values.ts";
import { canonicalize, changeLetter, hashMetadata, isUnbroken } from "./metadata.ts";

const { mint, transfer, verify, getToken, getHistory } = NftService.method;
const algorithm = "ML-DSA-65";
const [creator, second, third, forger] = [0, 1, 2, 3];

export const minting = step({
  title: "Mint a token",
  action: "Mint",
  why: `The server generates a key pair for the creator, signs the 32-byte metadata hash, and erases the secret
    key. Equal metadata must have equal hashes. Therefore it is written in RFC 8785's canonical form: sorted and
    without spaces.`,
  fields: {
    name: textField("Name", "Evening at the lake"),
    description: textField("Description", "Oil on canvas, 60 × 80 cm"),
    artworkUri: textField("Artwork", "https://gallery.example/evening.jpg"),
  },
  plan: (given) => planCall(mint, given),
  run: async ({ call }, { name, description, artworkUri }) => {
    const metadata = { name, description, artworkUri };
    const token = await call(mint, metadata);
    const hash = await hashMetadata(metadata);
    return {
      metadata,
      token,
      isHashEqual: toHex(hash) === token.metadataHash,
      isSigned: await verifyHere(algorithm, token.signature, hash, token.creatorPublicKey),
      isAddressEqual: (await deriveAddress(token.creatorPublicKey)) === token.creatorAddress,
    };
  },
  says: ({ token, isHashEqual, isSigned, isAddressEqual }) =>
    isHashEqual && isSigned && isAddressEqual
      ? `The token exists, and its creator signed it with ${formatBytes(token.signature.length)}.`
      : "Your browser finds that the token is not valid.",
  shows: ({ metadata, token, isHashEqual, isSigned, isAddressEqual }) => [
    facts({
      Token: token.tokenId,
      "Creator and first owner": code(token.creatorAddress),
      "Canonical JSON": code(fromUtf8(canonicalize(metadata))),
    }),
    evidence(
      "Hash, signature and public key",
      bytes("Metadata hash", fromHex(token.metadataHash)),
      bytes("Creator's signature", token.signature),
      bytes("Creator's public key", token.creatorPublicKey, algorithm),
    ),
    checks(
      reportEqual("the hash of the canonical JSON", isHashEqual),
      reportBrowser("the creator's signature over the metadata hash", isSigned),
      reportEqual("the creator's address is the hash of the public key", isAddressEqual),
    ),
    verifiedBy(algorithm),
    signatureSizes(algorithm, token.signature),
  ],
  draws: (value) => [
    find(
      creator,
      "signs the metadata",
      judge(value?.isSigned, "checked here", "the signature is not valid"),
      mark(value?.token.creatorAddress),
    ),
  ],
});

/** Derives an address from a new key pair, whose secret key is not needed. */
async function makeAddress(): Promise<string> {
  return deriveAddress((await makeSigningKey(algorithm)).publicKey);
}

export const transferring = step({
  title: "Transfer it twice",
  action: "Transfer twice",
  why: `Your browser generates key pairs for the new owners' addresses. Each transfer names the current owner,
    so that only one of two concurrent transfers succeeds. The owner does not sign a transfer. On a server
    with users, only the user who minted the token can transfer it.`,
  after: { minting },
  ends: [],
  run: async ({ call }, { minting: { token } }) => {
    const { tokenId, creatorAddress } = token;
    const [second, third] = [await makeAddress(), await makeAddress()];
    await call(transfer, { tokenId, fromOwner: creatorAddress, newOwner: second });
    const { currentOwner } = await call(transfer, { tokenId, fromOwner: second, newOwner: third });
    return { owners: [creatorAddress, second, third], currentOwner };
  },
  says: ({ owners, currentOwner }) =>
    sayExpected(
      currentOwner === owners[2],
      `The token went from its creator to a second owner and then to a third, ${shortenId(currentOwner)}.`,
      "The token does not have the expected owner",
    ),
  shows: ({ owners }) =>
    facts({ Creator: code(owners[0]), "Second owner": code(owners[1]), "Third owner": code(owners[2]) }),
  draws: (value) => [
    send(creator, second, "first transfer"),
    find(second, "owner", undefined, mark(value?.owners[1])),
    send(second, third, "second transfer"),
    find(third, "owner", undefined, mark(value?.owners[2])),
  ],
});

const reselling = step({
  title: "Transfer it again",
  action: "Try",
  why: "This step repeats the first transfer with a different recipient. The creator no longer owns the token.",
  after: { minting, transferring },
  run: async ({ call }, { minting: { token } }) => {
    const { tokenId, creatorAddress } = token;
    const newOwner = await makeAddress();
    return expectRefusal(call(transfer, { tokenId, fromOwner: creatorAddress, newOwner }), "OWNER_MISMATCH");
  },
  ...showRefusal(),
  draws: (value) => [send(creator, second, "transfer again", refuse(value?.reason))],
});

export const tracing = step({
  title: "Follow its history",
  action: "Follow",
  why: `The signature covers the metadata, not the owners. The server records the history. Your browser can
    only check that it has no gaps and starts with the known creator.`,
  after: { minting, transferring },
  run: async ({ call }, { minting: { token } }) => {
    const { tokenId, creatorAddress, creatorPublicKey, signature } = token;
    const { history, totalSize } = await call(getHistory, { tokenId });
    const { currentOwner, metadata } = await call(getToken, { tokenId });
    const { valid } = await call(verify, { tokenId });
    const hash = await hashMetadata(metadata ?? { name: "", description: "", artworkUri: "" });
    return {
      history,
      currentOwner,
      valid,
      isWhole: history.length === totalSize && isUnbroken(creatorAddress, history, currentOwner),
      isSigned: await verifyHere(algorithm, signature, hash, creatorPublicKey),
    };
  },
  says: ({ history, isWhole, isSigned, valid }) =>
    isWhole && isSigned && valid
      ? `Over ${formatNumber(history.length)} transfers, from the creator to the current owner, no step is missing.`
      : "The two sides disagree about the token.",
  shows: ({ history, currentOwner, valid, isWhole, isSigned }) => [
    listTransfers(history),
    facts({ "Current owner": code(currentOwner) }),
    checks(
      reportServer("metadata, signature and history, as stored", valid),
      reportBrowser(
        "each owner received it from the previous owner",
        isWhole,
        isWhole ? "unbroken" : "broken",
      ),
      reportBrowser("the stored metadata, with the creator's signature", isSigned),
    ),
  ],
  draws: (value) => [
    send(creator, second, "first transfer, as stored", judgeLink(value, 0)),
    send(second, third, "second transfer, as stored", judgeLink(value, 1)),
  ],
});

async function verifyOnBothSides(
  { call }: Caller,
  hash: Uint8Array,
  { signature: creatorSignature }: MintResponse,
  creatorPublicKey: Uint8Array,
) {
  const metadataHash = toHex(hash);
  const { valid, reason } = await call(verify, { metadataHash, creatorSignature, creatorPublicKey });
  const browser = await verifyHere(algorithm, creatorSignature, hash, creatorPublicKey);
  return { reason, verdicts: { server: valid, browser } };
}

export const altering = step({
  title: "Change one letter in a copy",
  action: "Change and verify",
  why: `The copy is yours; the stored token stays unchanged. One changed letter results in a hash that has
    nothing in common with the one that the creator signed. Choose a letter; counting starts at 0.`,
  fields: { place: numberField("Letter in the name", "0") },
  after: { minting },
  run: async (caller, { place, minting: { metadata, token } }) => {
    const copy = { ...metadata, name: changeLetter(metadata.name, Math.trunc(Number(place)) || 0) };
    const [before, after] = [canonicalize(metadata), canonicalize(copy)];
    const hash = await hashMetadata(copy);
    return {
      copy,
      change: { before, after, index: before.findIndex((byte, at) => byte !== after[at]) },
      hash,
      original: fromHex(token.metadataHash),
      ...(await verifyOnBothSides(caller, hash, token, token.creatorPublicKey)),
    };
  },
  says: ({ verdicts, reason }) =>
    sayInvalid(
      verdicts,
      `With one letter changed, neither side finds the signature valid. The server says: ${reason}.`,
    ),
  shows: ({ copy, hash, original, verdicts, ...altered }) => [
    facts({ "Name in the copy": copy.name }),
    change(altered.change),
    bytes("Hash of the minted metadata", original),
    bytes("Hash of the changed metadata", hash),
    checks(reportBoth("the creator's signature over the metadata hash", verdicts)),
  ],
  draws: (value) => [
    find(
      forger,
      "The metadata, with one letter changed.",
      judge(value && !areBothInvalid(value.verdicts), "signed", "not signed"),
    ),
  ],
});

export const forging = step({
  title: "Mint the same metadata with a different key",
  action: "Forge",
  why: `Anyone can copy the metadata and the hash, but not the key. The creator's address shows that this token has
    a different creator.`,
  after: { minting },
  run: async (caller, { minting: { metadata, token } }) => {
    const forged = await caller.call(mint, metadata);
    const hash = fromHex(forged.metadataHash);
    const { verdicts: withOwnKey } = await verifyOnBothSides(caller, hash, forged, forged.creatorPublicKey);
    const { verdicts: withCreatorKey } = await verifyOnBothSides(
      caller,
      hash,
      forged,
      token.creatorPublicKey,
    );
    return {
      forgerAddress: forged.creatorAddress,
      creatorAddress: token.creatorAddress,
      isSameHash: forged.metadataHash === token.metadataHash,
      withOwnKey,
      withCreatorKey,
    };
  },
  says: ({ isSameHash, withOwnKey, withCreatorKey }) =>
    sayExpected(
      isSameHash && areBothValid(withOwnKey) && areBothInvalid(withCreatorKey),
      "The forgery is signed too, but not by the creator: with the creator's key, neither side finds it valid.",
      "The forgery was not detected",
    ),
  shows: ({ forgerAddress, creatorAddress, withOwnKey, withCreatorKey }) => [
    facts({ "Creator of the work": code(creatorAddress), "Creator of the forgery": code(forgerAddress) }),
    checks(
      reportBoth("the forger's signature, with the forger's key", withOwnKey),
      reportBoth("the forger's signature, with the creator's key", withCreatorKey),
    ),
  ],
  draws: (value) => [
    find(
      forger,
      "signs the same metadata",
      judge(
        value && !areBothInvalid(value.withCreatorKey),
        "the creator's signature",
        "not the creator's signature",
      ),
      mark(value?.forgerAddress),
    ),
  ],
});

function listTransfers(history: readonly TokenTransfer[]) {
  return (
    <ol class="owners">
      {history.map(({ fromAddress, toAddress, timestamp }, at) => (
        <li key={`${at} ${toAddress}`}>
          <code>{shortenId(fromAddress)}</code> to <code>{shortenId(toAddress)}</code>
          {timestamp && <span class="hint"> {timestampDate(timestamp).toISOString()}</span>}
        </li>
      ))}
    </ol>
  );
}

/** Whether a transfer came from the previous owner. */
function judgeLink(
  traced: { readonly history: readonly TokenTransfer[]; readonly isWhole: boolean } | undefined,
  at: number,
) {
  const before = traced?.history[at - 1]?.toAddress ?? traced?.history[0]?.fromAddress;
  const link = traced?.history[at];
  return judge(
    traced && link !== undefined && link.fromAddress === before && traced.isWhole,
    "follows the previous owner",
    "does not follow the previous owner",
  );
}

/** An address's bytes, as a pattern. */
function mark(address: string | undefined) {
  return address === undefined ? undefined : fromHex(address.slice("0x".length));
}

export const Page = defineStory({
  title: "Token and provenance",
  lead: `A token describes a work, with its creator's signature and the history of its owners. The signature covers a
    hash of the metadata, so no letter can change. The history leads from the creator to the current owner.`,
  parties: [
    { name: "Creator" },
    { name: "Second owner" },
    { name: "Third owner" },
    { name: "Forger", isAttacker: true },
  ],
  steps: [minting, transferring, reselling, tracing, altering, forging],
});
