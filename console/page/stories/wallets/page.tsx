/** A wallet: its address, its signatures, and what a signature does not protect against. */
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import {
  areBothValid,
  reportBoth,
  reportBrowser,
  reportEqual,
  reportServer,
  sayExpected,
} from "../../checks.ts";
import {
  bytes,
  checks,
  code,
  facts,
  hint,
  publicKeySizes,
  showRefusal,
  showTampering,
  signatureSizes,
} from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import { FieldTable } from "./field-table.tsx";
import {
  algorithm,
  alterTransaction,
  createAndCheckWallet,
  replayTransaction,
  searchAnswers,
  signAndVerify,
  signAsThief,
  signWithMissingWallet,
} from "./steps.ts";

const text = textField("Transaction", "Pay 100 to Grace, transaction 1");

const creating = step({
  title: "Create a wallet",
  action: "Create",
  why: `The address is the first 20 bytes of SHA-256 of the public key. Your browser recomputes it, so the server cannot
    send the address of another key.`,
  fields: { label: textField("Human-readable name", "Savings") },
  plan: ({ label }) => planCall(WalletService.method.createWallet, { label }),
  run: (caller, { label }) => createAndCheckWallet(caller, label),
  says: ({ wallet, isAddressEqual }) =>
    sayExpected(
      isAddressEqual,
      `The wallet has an address of 20 bytes for a public key of ${formatBytes(wallet.publicKey.length)}.`,
      "The address does not match the public key",
    ),
  shows: ({ wallet, isAddressEqual }) => [
    facts({ Wallet: wallet.walletId, Address: code(wallet.address) }),
    bytes("Public key", wallet.publicKey, wallet.algorithm),
    checks(reportEqual("the address is the hash of the public key", isAddressEqual)),
    publicKeySizes(algorithm, wallet.publicKey),
  ],
});

const signing = step({
  title: "Sign a transaction",
  action: "Sign and verify",
  why: "The server signs the transaction itself, not a digest. It does not interpret the transaction.",
  fields: { text },
  after: { creating },
  run: (caller, given) => signAndVerify(caller, given.creating, given.text),
  says: ({ signed, verdicts, isSameAddress }) =>
    sayExpected(
      areBothValid(verdicts) && isSameAddress,
      `A signature of ${formatBytes(signed.signature.length)}, valid for both sides, by the wallet's key.`,
      "The sides do not both find it valid",
    ),
  shows: ({ data, signed, verdicts, isSameAddress }) => [
    bytes("Transaction", data),
    bytes("Signature", signed.signature),
    checks(
      reportBoth("the signature over the transaction", verdicts),
      reportEqual("the key that came with it has the wallet's address", isSameAddress),
    ),
    hint(`Your browser uses ${browserLibrary} and the public key of the previous step.`),
    signatureSizes(algorithm, signed.signature),
  ],
});

const altering = step({
  title: "Alter one byte",
  action: "Alter and verify",
  why: "An attacker changes the amount: one bit turns the first 1 into a 9.",
  after: { creating, signing },
  run: (caller, given) => alterTransaction(caller, given.creating, given.signing),
  ...showTampering(
    "the signature over the altered transaction",
    () => "Neither side finds the signature valid for the altered transaction.",
  ),
});

const swapping = step({
  title: "Swap the key",
  action: "Sign as a thief",
  why: `A thief creates a wallet, signs the same transaction, and sends it with the thief's public key. The signature is
    genuine. Only the address reveals the thief.`,
  after: { creating, signing },
  run: (caller, given) => signAsThief(caller, given.creating, given.signing),
  says: ({ verdicts, isOwner }) =>
    sayExpected(
      areBothValid(verdicts) && !isOwner.browser,
      "The thief's signature is valid, but for the key of another address. “Valid” alone does not protect you.",
      "The thief was accepted as the owner",
    ),
  shows: ({ verdicts, computed, expected, isOwner }) => [
    facts({
      "Address of the wallet": code(expected),
      "Address of the key that signed": code(computed),
    }),
    checks(
      reportBoth("the signature, with the key that came with it", verdicts),
      reportServer("the address that it names for this key", isOwner.server, nameOwner(isOwner.server)),
      reportBrowser("the address of this key", isOwner.browser, nameOwner(isOwner.browser)),
    ),
  ],
});

const replaying = step({
  title: "Use it twice",
  action: "Replay",
  why: `A signature proves the signer and the content, but not the time or the number of uses. Systems that execute
    transactions store a list of executed transaction hashes. They do not use the signature, because two signatures of
    one transaction differ. A number in the transaction distinguishes two intended payments.`,
  after: { creating, signing },
  run: (caller, given) => replayTransaction(caller, given.creating, given.signing),
  says: ({ valid, validAgain, accepted: [first, second] }) =>
    sayExpected(
      valid && validAgain && first === true && second === false,
      "Both sides always find it valid. Your browser's list accepts it only once.",
      "The replay was not detected",
    ),
  shows: ({ valid, validAgain, transactionHash, accepted, isSameSignature, again }) => [
    bytes("A second signature of the same transaction", again),
    facts({
      "The two signatures": isSameSignature
        ? "equal"
        : "different, because ML-DSA draws random bytes for each signature",
      "Hash of the transaction": code(transactionHash),
    }),
    checks(
      reportServer("the first signature, presented again", valid),
      reportServer("the second signature", validAgain),
      accepted.map((isNew, at) =>
        reportBrowser(
          `the transaction, presented for the ${at === 0 ? "first" : "second"} time`,
          isNew,
          isNew ? "taken" : "seen before",
        ),
      ),
    ),
  ],
});

const guessing = step({
  title: "Sign with a wallet that does not exist",
  action: "Try",
  why: "The ID of a wallet is random. For a guessed ID and for wallets of other users, the answer is the same.",
  reads: { text },
  run: (caller, given) => signWithMissingWallet(caller, given.text),
  ...showRefusal(),
});

const searching = step({
  title: "Look for the private key",
  action: "Look through the answers",
  why: `A private key of ${algorithm} has 4,032 bytes, or 32 as a seed. Your browser checks every field that the server
    sent above and identifies it. No call is made.`,
  after: { creating, signing },
  run: (_caller, given) => searchAnswers(given.creating, given.signing),
  says: ({ count, unknownCount }) =>
    unknownCount === 0
      ? `All ${formatNumber(count)} fields are public. None contains the private key.`
      : `${formatNumber(unknownCount)} of ${formatNumber(count)} fields are not known to be public.`,
  shows: ({ answers, unknownCount }) => [
    <FieldTable key="fields" answers={answers} />,
    checks(
      reportBrowser(
        "every field of the answers is public",
        unknownCount === 0,
        unknownCount === 0 ? "nothing private" : "not known",
      ),
    ),
  ],
});

function nameOwner(isOwner: boolean): string {
  return isOwner ? "the wallet's" : "another";
}

export const Page = defineStory({
  title: "Wallets",
  lead: `A wallet is a key pair with an address. The server stores the private key and signs for you. With the address,
    anyone can check whether a transaction is yours.`,
  steps: [creating, signing, altering, swapping, replaying, guessing, searching],
});
