/** A proposal: three signers create a wallet, two of them sign, a stranger cannot, and it executes once. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
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
} from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { settings } from "../../settings.ts";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import type { Signer } from "./signers.ts";
import {
  algorithm,
  executeEarly,
  executeTwice,
  foundWallet,
  gatherSigners,
  propose,
  type Signed,
  signAs,
  signAsStranger,
  signTwice,
  threshold,
} from "./steps.ts";

const title = textField("Title", "Buy a new roof");
const [you, grace, alan, stranger, wallet] = [0, 1, 2, 3, 4];

const gathering = step({
  title: "Three signers generate their keys",
  action: "Generate three keys",
  why: `Your secret key is generated here and stays in this page. Grace and Alan have their keys in the key service, if it
    runs, and call it to sign. A signer's address is the first part of SHA-256 of the public key.`,
  run: (caller) => gatherSigners(caller, settings.services.has(KmsService.typeName)),
  says: ({ you, grace, alan }) => `Your key is ${you.place}, Grace's ${grace.place}, Alan's ${alan.place}.`,
  shows: ({ you, all }) => [
    bytes("Your public key", you.publicKey, algorithm),
    heading("Addresses of the signers"),
    facts(Object.fromEntries(all.map(({ name, address, place }) => [`${name}, ${place}`, code(address)]))),
  ],
  draws: (value) => [
    find([you, grace, alan], "key pair", undefined, ...(value?.all.map(({ publicKey }) => publicKey) ?? [])),
  ],
});

const founding = step({
  title: "They create a wallet",
  action: "Create the wallet",
  why: "The server gets the three public keys and no secret key. It cannot sign for any of the signers.",
  after: { gathering },
  run: (caller, given) => foundWallet(caller, given.gathering),
  says: ({ walletId, isSame }) =>
    sayExpected(
      isSame,
      `The wallet is ${walletId}. It needs ${threshold} of 3 signatures.`,
      "The wallet has other signers than these three",
    ),
  shows: ({ isSame }) =>
    checks(reportEqual("the signers' addresses, compared with those of their keys", isSame)),
  draws: (value) => [
    send(you, wallet, "three public keys"),
    find(
      wallet,
      `It needs ${threshold} of 3 signatures.`,
      judge(value?.isSame, "same signers", "other signers"),
    ),
  ],
});

const proposing = step({
  title: "A signer creates a proposal",
  action: "Propose",
  why: `The signers sign the hash of a text that contains the wallet, the content, the threshold and the time of expiry.
    Your browser writes this text from your request, not from the answer of the server, and compares the hashes.`,
  fields: { title, text: textField("Content of the proposal", "Pay 40,000 to the roofer") },
  after: { founding },
  run: (caller, given) => propose(caller, given.founding, given),
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
    bytes("SHA-256 of it", hash),
    checks(reportEqual("the server's hash of the proposal", isSame)),
  ],
  draws: (value) => [
    send(you, wallet, "proposal", judge(value?.isSame, "the same hash", "another hash")),
    find(you, "hash to sign", undefined, value?.hash),
  ],
});

const hurrying = step({
  title: "Execution without signatures",
  action: "Execute without signatures",
  why: "There are no signatures yet.",
  after: { proposing },
  run: (caller, given) => executeEarly(caller, given.proposing),
  ...showRefusal("The server refuses"),
  draws: (value) => [send(you, wallet, "execute", refuse(value?.reason))],
});

const intruding = step({
  title: "A stranger signs",
  action: "Sign as a stranger",
  why: "He has his own key and signs the right hash. First he uses his own address, then that of Grace.",
  after: { gathering, proposing },
  run: (caller, given) => signAsStranger(caller, given.gathering, given.proposing),
  says: ({ asHimself, asGrace }) =>
    `Under his own address: ${asHimself.reason}. Under Grace's address: ${asGrace.reason}.`,
  shows: ({ asHimself, asGrace, isGraces }) => [
    refused(asHimself),
    refused(asGrace),
    checks(
      reportBrowser("his signature, with Grace's public key", isGraces),
      reportServer("his signature, under Grace's address", asGrace.reason !== "SIGNATURE_INVALID"),
    ),
  ],
  draws: (value) => [
    attack(stranger, wallet, "signature, under his address", refuse(value?.asHimself.reason)),
    attack(stranger, wallet, "signature, under Grace's address", refuse(value?.asGrace.reason)),
  ],
});

const signing = step({
  title: "You sign",
  action: "Sign in your browser",
  why: `Your browser signs the hash that it computed itself, and sends the signature. Then it sends the signature
    again.`,
  after: { gathering, proposing, hurrying },
  run: (caller, given) => signTwice(caller, given.gathering, given.proposing),
  says: ({ count, again }) =>
    `The proposal has ${count} of ${threshold} signatures. Yours counts once: ${again.reason}.`,
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

const joining = step({
  title: "Grace signs",
  action: "Sign as Grace",
  why: "Her key never leaves its place. Your browser also verifies her signature, with her public key.",
  after: { gathering, proposing, signing },
  run: (caller, given) => signAs(caller, given.gathering.grace, given.proposing),
  says: ({ count }) => `The proposal has ${count} of ${threshold} signatures.`,
  shows: (signed, { read }) => showSignature(signed, read(gathering)?.all),
  draws: (value) => drawSignature(grace, 2, value),
});

const executing = step({
  title: "Execute it, once",
  action: "Execute twice",
  why: `The server verifies all stored signatures again, and executes the proposal. When callers race, one of them
    executes it.`,
  after: { proposing, joining },
  run: (caller, given) => executeTwice(caller, given.proposing),
  says: ({ status, again }) => `The proposal is ${status}. A second time it is refused: ${again.reason}.`,
  shows: ({ status, executedAt, again }) => [
    facts({ Status: status, "Executed at": executedAt?.toISOString() }),
    refused(again),
  ],
  draws: (value) => [
    send(you, wallet, "execute", judge(value && value.status === "EXECUTED", "EXECUTED", `${value?.status}`)),
    send(you, wallet, "execute again", refuse(value?.again.reason)),
  ],
});

/** A signature on its way, and how many the wallet has after it. */
function drawSignature(signer: number, count: number, signed: Signed | undefined) {
  return [
    send(signer, wallet, "signature", judge(signed?.verdicts.browser, "valid", "not valid")),
    find(wallet, `${signed?.count ?? count} of ${threshold} signatures`),
  ];
}

/** A signature, what each side found of it, and who has signed by now. */
function showSignature({ signature, signedBy, verdicts }: Signed, signers: readonly Signer[] = []) {
  return [
    bytes("Signature", signature),
    checks(
      reportBrowser("the signature over the hash", verdicts.browser),
      reportServer("the signature over the hash", verdicts.server),
    ),
    heading("Signatures, as the server counts them"),
    facts(
      Object.fromEntries(
        signers.map(({ name, address }) => [name, signedBy.includes(address) ? "signed" : "not yet"]),
      ),
    ),
  ];
}

export const Page = defineStory({
  title: "Governance",
  lead: `A wallet has three signers and acts when two of them sign. Each signer signs the exact content of the proposal
    with ML-DSA-65, so a signature cannot be moved to another proposal.`,
  parties: [
    { name: "You" },
    { name: "Grace" },
    { name: "Alan" },
    { name: "Stranger", isAttacker: true },
    { name: "Wallet" },
  ],
  steps: [gathering, founding, proposing, hurrying, intruding, signing, joining, executing],
});
