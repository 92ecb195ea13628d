/** A token: what its creator signed, who owned it, and how a change shows. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { NftService, type TokenTransfer } from "#gen/nft/nft_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
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
import { fromHex, shortHex } from "../../hex.ts";
import { OwnerChain, type OwnerItem } from "../../parts/diagrams/owner-chain.tsx";
import { judge, refuse } from "../../parts/diagrams/sequence.ts";
import {
  bytes,
  change,
  checks,
  code,
  evidence,
  facts,
  hint,
  showRefusal,
  signatureSizes,
} from "../../parts/show.tsx";
import { numberField, textField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { type StoryState, step } from "../../story-step.ts";
import { formatBytes, formatNumber, fromUtf8 } from "../../values.ts";
import { canonicalize } from "./metadata.ts";
import {
  algorithm,
  alterName,
  forgeToken,
  mintToken,
  sellAgain,
  traceHistory,
  transferTwice,
} from "./steps.ts";

const minting = step({
  title: "Mint a token",
  action: "Mint",
  why: `The server generates a key pair for the creator, signs the 32 bytes of the metadata hash, and erases the secret
    key. Equal words must have equal hashes. Therefore they are written in the canonical form of RFC 8785: sorted, and
    without spaces.`,
  fields: {
    name: textField("Name", "Evening at the lake"),
    description: textField("Description", "Oil on canvas, 60 × 80 cm"),
    artworkUri: textField("Artwork", "https://gallery.example/evening.jpg"),
  },
  plan: (given) => planCall(NftService.method.mint, given),
  run: mintToken,
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
    hint(`Your browser uses ${browserLibrary}.`),
    signatureSizes(algorithm, token.signature),
  ],
});

const transferring = step({
  title: "Transfer it twice",
  action: "Transfer twice",
  why: `Your browser generates key pairs for the addresses of the new owners. Each transfer names the current owner, so
    that only one of two concurrent transfers succeeds. The owner does not sign a transfer. On a server with users, only
    the user who minted the token can transfer it.`,
  after: { minting },
  run: (caller, given) => transferTwice(caller, given.minting),
  says: ({ owners, currentOwner }) =>
    sayExpected(
      currentOwner === owners[2],
      `The token went from its creator to a second owner and then to a third, ${shortHex(currentOwner)}.`,
      "The token does not have the expected owner",
    ),
  shows: ({ owners: [creator, second, third] }) =>
    facts({ Creator: code(creator), "Second owner": code(second), "Third owner": code(third) }),
});

const reselling = step({
  title: "Transfer it again",
  action: "Try",
  why: "This step repeats the first transfer with another recipient. The creator no longer owns the token.",
  after: { minting, transferring },
  run: (caller, given) => sellAgain(caller, given.minting),
  ...showRefusal(),
});

const tracing = step({
  title: "Follow its history",
  action: "Follow",
  why: `The signature covers the words, not the owners. The server records the history. Your browser can only check that
    it has no gaps and begins with the known creator.`,
  after: { minting, transferring },
  run: (caller, given) => traceHistory(caller, given.minting),
  says: ({ history, isWhole, isSigned, valid }) =>
    isWhole && isSigned && valid
      ? `Over ${formatNumber(history.length)} transfers, from the creator to the current owner, no step is missing.`
      : "The sides do not both find the token valid.",
  shows: ({ history, currentOwner, valid, isWhole, isSigned }) => [
    listTransfers(history),
    facts({ "Owner today": code(currentOwner) }),
    checks(
      reportServer("metadata, signature and history, as stored", valid),
      reportBrowser(
        "each owner received it from the previous owner",
        isWhole,
        isWhole ? "unbroken" : "broken",
      ),
      reportBrowser("the stored words, with the creator's signature", isSigned),
    ),
  ],
});

const altering = step({
  title: "Change one letter in a copy",
  action: "Change and verify",
  why: `The copy is yours; the stored token stays as it is. One changed letter gives a hash that has nothing in common
    with the one that the creator signed. Choose a letter; counting begins at 0.`,
  fields: { place: numberField("Letter of the name", "0") },
  after: { minting },
  run: (caller, given) => alterName(caller, given.minting, given.place),
  says: ({ verdicts, reason }) =>
    sayInvalid(
      verdicts,
      `With one letter changed, neither side finds the signature valid. The server says: ${reason}.`,
    ),
  shows: ({ copy, hash, original, verdicts, ...altered }) => [
    facts({ "Name in the copy": copy.name }),
    change(altered.change),
    bytes("Hash of the words as they were minted", original),
    bytes("Hash of the changed words", hash),
    checks(reportBoth("the creator's signature over the metadata hash", verdicts)),
  ],
});

const forging = step({
  title: "Mint the same words with another key",
  action: "Forge",
  why: `Anyone can copy the words and the hash, but not the key. The address of the creator shows that this token has
    another creator.`,
  after: { minting },
  run: (caller, given) => forgeToken(caller, given.minting),
  says: ({ isSameHash, withOwnKey, withCreatorKey }) =>
    sayExpected(
      isSameHash && areBothValid(withOwnKey) && areBothInvalid(withCreatorKey),
      "The forgery is signed, too, but not by the creator: with the creator's key, neither side finds it valid.",
      "The forgery was not detected",
    ),
  shows: ({ forgerAddress, creatorAddress, withOwnKey, withCreatorKey }) => [
    facts({ "Creator of the work": code(creatorAddress), "Creator of the forgery": code(forgerAddress) }),
    checks(
      reportBoth("the forger's signature, with the forger's key", withOwnKey),
      reportBoth("the forger's signature, with the creator's key", withCreatorKey),
    ),
  ],
});

function listTransfers(history: readonly TokenTransfer[]) {
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

/** Draws the owners from the creator to the current one, and then what the forger tried. */
function drawOwners({ read }: StoryState): readonly OwnerItem[] {
  const minted = read(minting);
  const [creator = minted?.token.creatorAddress, second, third] = read(transferring)?.owners ?? [];
  const forged = read(forging);
  return [
    {
      kind: "owner",
      name: "Creator",
      ...showAddress(creator),
      verdict: judge(minted?.isSigned, "signed the words, checked here", "the signature is not valid"),
    },
    { kind: "link", text: "first transfer", verdict: judgeLink(read(tracing), 0) },
    { kind: "owner", name: "Second owner", ...showAddress(second) },
    { kind: "link", text: "second transfer", verdict: judgeLink(read(tracing), 1) },
    { kind: "owner", name: "Third owner", ...showAddress(third) },
    {
      kind: "link",
      text: "the creator transfers it again",
      isAttack: true,
      verdict: refuse(read(reselling)?.reason),
    },
    {
      kind: "owner",
      name: "Forger, with the same words",
      isAttacker: true,
      ...showAddress(forged?.forgerAddress),
      verdict: judge(
        forged && !areBothInvalid(forged.withCreatorKey),
        "the creator's signature",
        "not the creator's signature",
      ),
    },
  ];
}

/** A link holds if the token came from the owner before. */
function judgeLink(traced: Awaited<ReturnType<typeof traceHistory>> | undefined, at: number) {
  const before = traced?.history[at - 1]?.toAddress ?? traced?.history[0]?.fromAddress;
  const link = traced?.history[at];
  return judge(
    traced && link !== undefined && link.fromAddress === before && traced.isWhole,
    "follows the owner before",
    "does not follow the owner before",
  );
}

function showAddress(address: string | undefined) {
  if (address === undefined) return { detail: undefined, mark: undefined };
  return { detail: shortHex(address), mark: fromHex(address.slice("0x".length)) };
}

export const Page = defineStory({
  title: "Token and provenance",
  lead: `A token describes a work, with the signature of its creator and the history of its owners. The signature covers a
    hash of the words, so no letter can change. The history leads from the creator to the current owner.`,
  scene: {
    title: "From owner to owner",
    shows: (story) => <OwnerChain label="Owners" items={drawOwners(story)} />,
  },
  steps: [minting, transferring, reselling, tracing, altering, forging],
});
