/** A proposal: three signers create a wallet, two of them sign, an outsider cannot, and it executes once. */
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { hashProposal, type SignedProposal, writeSigningText } from "../../../../src/client/hash-proposal.ts";
import { verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { reportBoth, reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { attack, find, judge, refuse, send } from "../../parts/diagrams/sequence.ts";
import {
  bytes,
  checks,
  code,
  facts,
  heading,
  refused,
  showRefusal,
  signatureSizes,
  verifiedBy,
} from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { settings } from "../../settings.ts";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { defineStory } from "../../story.tsx";
import { type ResultOf, step } from "../../story-step.ts";
import { areEqual, toUtf8 } from "../../values.ts";
import { makeBrowserSigner, makeServiceSigner, type Signer } from "./signers.ts";

const { createMultisig, createProposal, signProposal, executeProposal } = DefiService.method;
const algorithm = "ML-DSA-65";
const threshold = 2;
const lifetimeMs = 60 * 60 * 1000;
const title = textField("Title", "Buy a new roof");
const [you, grace, alan, outsider, wallet] = [0, 1, 2, 3, 4];

export const gathering = step({
  title: "Three signers generate their keys",
  action: "Generate three keys",
  why: `Your secret key is generated here and stays in this page. Grace's and Alan's keys are in the key
    service, if it is running. A signer's address is the first part of the public key's SHA-256.`,
  run: async (caller) => {
    const hasKeyService = settings.services.has(KmsService.typeName);
    const makeOther = (name: string): Promise<Signer> =>
      hasKeyService ? makeServiceSigner(caller, name) : makeBrowserSigner(name);
    const you = await makeBrowserSigner("You");
    const grace = await makeOther("Grace");
    const alan = await makeOther("Alan");
    return { you, grace, alan, all: [you, grace, alan] };
  },
  says: ({ you, grace }) => `Your key is ${you.place}. Grace's and Alan's are ${grace.place}.`,
  shows: ({ you, all }) => [
    bytes("Your public key", you.publicKey, algorithm),
    heading("The signers' addresses"),
    facts(Object.fromEntries(all.map(({ name, address, place }) => [`${name}, ${place}`, code(address)]))),
  ],
  draws: (value) => [
    find([you, grace, alan], "key pair", undefined, ...(value?.all.map(({ publicKey }) => publicKey) ?? [])),
  ],
});

export const founding = step({
  title: "The signers create a wallet",
  action: "Create the wallet",
  why: "The server receives three public keys and no secret key, so it cannot sign for any of the signers.",
  after: { gathering },
  run: async ({ call }, { gathering: { all } }) => {
    const signerPublicKeys = all.map(({ publicKey }) => publicKey);
    const { walletId, signers } = await call(createMultisig, { threshold, signerPublicKeys });
    return { walletId, isSame: all.every(({ address }, at) => signers[at] === address) };
  },
  says: ({ walletId, isSame }) =>
    sayExpected(
      isSame,
      `The wallet is ${walletId}. It needs ${threshold} of 3 signatures.`,
      "The wallet has different signers",
    ),
  shows: ({ isSame }) => checks(reportEqual("the signers' addresses, derived from their keys", isSame)),
  draws: (value) => [
    send(you, wallet, "three public keys"),
    find(
      wallet,
      `It needs ${threshold} of 3 signatures.`,
      judge(value?.isSame, "same signers", "different signers"),
    ),
  ],
});

export const proposing = step({
  title: "A signer creates a proposal",
  action: "Propose",
  why: `The signers sign the hash of a text that contains the wallet, the content, the threshold and the expiry time.
    Your browser builds this text from your request, not from the server's answer, and compares the hashes.`,
  fields: { title, text: textField("Proposal", "Pay 40,000 to the roofer") },
  after: { founding },
  run: async ({ call }, { title, text, founding: { walletId } }) => {
    const data = toUtf8(text);
    const expiresAt = timestampFromMs(Date.now() + lifetimeMs);
    const { proposal } = await call(createProposal, { walletId, title, data, expiresAt });
    if (proposal?.createdAt === undefined) throw new Error("the server sent no proposal");
    const { proposalId, createdAt } = proposal;
    // ID and time come from the server; everything else is the reader's own input, not the server's answer.
    const facts: SignedProposal = { walletId, title, data, expiresAt, threshold, proposalId, createdAt };
    const hash = await hashProposal(facts);
    return { proposalId, hash, text: writeSigningText(facts), isSame: areEqual(hash, proposal.signingHash) };
  },
  says: ({ proposalId, isSame }) =>
    sayExpected(
      isSame,
      `It is ${proposalId}, and accepts signatures for one hour.`,
      "The server stored a different proposal",
    ),
  shows: ({ hash, text, isSame }) => [
    heading("What is signed"),
    <pre key="text" class="code">
      {text}
    </pre>,
    bytes("SHA-256 of this text", hash),
    checks(reportEqual("the server's hash of the proposal", isSame)),
  ],
  draws: (value) => [
    send(you, wallet, "proposal", judge(value?.isSame, "the same hash", "a different hash")),
    find(you, "hash to sign", undefined, value?.hash),
  ],
});

const hurrying = step({
  title: "Try to execute without signatures",
  action: "Execute without signatures",
  why: "Nobody has signed yet.",
  after: { proposing },
  run: ({ call }, { proposing: { proposalId } }) =>
    expectRefusal(call(executeProposal, { proposalId }), "THRESHOLD_NOT_REACHED"),
  ...showRefusal("The server refuses"),
  draws: (value) => [send(you, wallet, "execute", refuse(value?.reason))],
});

export const intruding = step({
  title: "An outsider signs",
  action: "Sign as an outsider",
  why: "He has his own key and signs the right hash, first under his own address, then under Grace's.",
  after: { gathering, proposing },
  run: async ({ call }, { gathering: { grace }, proposing: { proposalId, hash } }) => {
    const outsider = await makeSigningKey(algorithm);
    const signature = outsider.sign(hash);
    const signer = await deriveAddress(outsider.publicKey);
    return {
      asHimself: await expectRefusal(call(signProposal, { proposalId, signer, signature }), "SIGNER_UNKNOWN"),
      asGrace: await expectRefusal(
        call(signProposal, { proposalId, signer: grace.address, signature }),
        "SIGNATURE_INVALID",
      ),
      isGraces: await verifyHere(algorithm, signature, hash, grace.publicKey),
    };
  },
  says: ({ asHimself, asGrace }) =>
    `Under his own address: ${asHimself.reason}. Under Grace's address: ${asGrace.reason}.`,
  shows: ({ asHimself, asGrace, isGraces }) => [
    refused(asHimself),
    refused(asGrace),
    checks(
      reportBrowser("his signature, with Grace's public key", isGraces),
      reportServer("his signature, under Grace's address", false),
    ),
  ],
  draws: (value) => [
    attack(outsider, wallet, "signature, under his address", refuse(value?.asHimself.reason)),
    attack(outsider, wallet, "signature, under Grace's address", refuse(value?.asGrace.reason)),
  ],
});

/** Lets a signer sign, and verifies the signature here before it is sent. */
async function signAs(caller: Caller, signer: Signer, { proposalId, hash }: ResultOf<typeof proposing>) {
  const signature = await signer.sign(caller, hash);
  const browser = await verifyHere(algorithm, signature, hash, signer.publicKey);
  const { proposal } = await caller.call(signProposal, { proposalId, signer: signer.address, signature });
  const signedBy = proposal?.signedBy ?? [];
  const count = proposal?.signatureCount ?? 0;
  return { signature, count, signedBy, verdicts: { browser, server: signedBy.includes(signer.address) } };
}

type Signed = Awaited<ReturnType<typeof signAs>>;

export const signing = step({
  title: "You sign",
  action: "Sign in your browser",
  why: `Your browser signs the hash that it computed itself, and sends the signature. Then it sends the signature
    again.`,
  after: { gathering, proposing, hurrying, intruding },
  ends: [hurrying, intruding],
  run: async (caller, { gathering: { you }, proposing }) => {
    const signed = await signAs(caller, you, proposing);
    const { proposalId } = proposing;
    const { signature } = signed;
    const again = await expectRefusal(
      caller.call(signProposal, { proposalId, signer: you.address, signature }),
      "ALREADY_SIGNED",
    );
    return { ...signed, again };
  },
  says: ({ count, again }) =>
    `The proposal has ${count} of ${threshold} signatures. Yours counts only once: ${again.reason}.`,
  shows: (signed, { read }) => [
    showSignature(signed, read(gathering)?.all),
    signatureSizes(algorithm, signed.signature),
    refused(signed.again),
  ],
  draws: (value) => [
    ...drawSignature(you, 1, value),
    send(you, wallet, "the signature again", refuse(value?.again.reason)),
  ],
});

export const joining = step({
  title: "Grace signs",
  action: "Sign as Grace",
  why: "Her key never leaves the key service. Your browser also verifies her signature with her public key.",
  after: { gathering, proposing, signing },
  ends: [signing],
  run: (caller, given) => signAs(caller, given.gathering.grace, given.proposing),
  says: ({ count }) => `The proposal has ${count} of ${threshold} signatures.`,
  shows: (signed, { read }) => showSignature(signed, read(gathering)?.all),
  draws: (value) => drawSignature(grace, 2, value),
});

export const executing = step({
  title: "Execute it, once",
  action: "Execute twice",
  why: `The server verifies all stored signatures again and executes the proposal. If several callers race,
    only one of them executes it.`,
  after: { proposing, joining },
  ends: [joining],
  run: async ({ call }, { proposing: { proposalId } }) => {
    const { proposal, executedAt } = await call(executeProposal, { proposalId });
    const again = await expectRefusal(call(executeProposal, { proposalId }), "PROPOSAL_EXECUTED");
    return { status: proposal?.proposalStatus, executedAt: executedAt && timestampDate(executedAt), again };
  },
  says: ({ status, again }) => `The proposal is ${status}. A second attempt is refused: ${again.reason}.`,
  shows: ({ status, executedAt, again }) => [
    facts({ Status: status, "Executed at": executedAt?.toISOString() }),
    refused(again),
  ],
  draws: (value) => [
    send(you, wallet, "execute", judge(value && value.status === "EXECUTED", "EXECUTED", `${value?.status}`)),
    send(you, wallet, "execute again", refuse(value?.again.reason)),
  ],
});

/** A signature in transit, and the wallet's count after it. */
function drawSignature(signer: number, count: number, signed: Signed | undefined) {
  return [
    send(signer, wallet, "signature", judge(signed?.verdicts.browser, "valid", "not valid")),
    find(wallet, `${signed?.count ?? count} of ${threshold} signatures`),
  ];
}

/** A signature, each side's finding, and who has signed so far. */
function showSignature({ signature, signedBy, verdicts }: Signed, signers: readonly Signer[] = []) {
  return [
    bytes("Signature", signature),
    checks(reportBoth("the signature over the hash", verdicts)),
    verifiedBy(algorithm),
    heading("Signatures counted by the server"),
    facts(
      Object.fromEntries(
        signers.map(({ name, address }) => [name, signedBy.includes(address) ? "signed" : "not yet"]),
      ),
    ),
  ];
}

export const Page = defineStory({
  title: "Governance",
  lead: `A wallet has three signers and acts when two of them sign. Each signer signs the proposal's exact content
    with ML-DSA-65, so a signature cannot be moved to a different proposal.`,
  parties: [
    { name: "You" },
    { name: "Grace" },
    { name: "Alan" },
    { name: "Outsider", isAttacker: true },
    { name: "Wallet" },
  ],
  steps: [gathering, founding, proposing, hurrying, intruding, signing, joining, executing],
});
