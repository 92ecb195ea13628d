/** A wallet: its address, its signatures, and what a signature does not protect against. */
import {
  CreateWalletResponseSchema,
  SignTransactionResponseSchema,
  VerifyTransactionResponseSchema,
  WalletService,
} from "#gen/wallet/wallet_service_pb.ts";
import { nameCode, sha256, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import {
  areBothValid,
  reportBoth,
  reportBrowser,
  reportEqual,
  reportServer,
  sayExpected,
} from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { publicKeyParts, signatureParts } from "../../home/cells.ts";
import { type Column, RecordTable } from "../../parts/record-table.tsx";
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
import { ValuePictures } from "../../parts/value-pictures.tsx";
import { deriveAddress } from "../../signing-key.ts";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { areEqual, changeByte, formatBytes, formatNumber, toHex, toUtf8 } from "../../values.ts";
import { type FoundField, findFields } from "./answers.ts";

const { createWallet, signTransaction, verifyTransaction } = WalletService.method;
const algorithm = "ML-DSA-65";

export const creating = step({
  title: "Create a wallet",
  action: "Create",
  why: `The address is the first 20 bytes of the public key's SHA-256. Your browser recomputes it, so the
    server cannot substitute a different key's address.`,
  fields: { label: textField("Name", "Savings") },
  plan: ({ label }) => planCall(createWallet, { label }),
  run: async ({ call }, { label }) => {
    const wallet = await call(createWallet, { label });
    return { label, wallet, isAddressEqual: (await deriveAddress(wallet.publicKey)) === wallet.address };
  },
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

async function verifyOnBothSides(
  { call }: Caller,
  data: Uint8Array,
  signature: Uint8Array,
  publicKey: Uint8Array,
) {
  const verified = await call(verifyTransaction, { data, signature, publicKey });
  const browser = await verifyHere(algorithm, signature, data, publicKey);
  return { verified, verdicts: { server: verified.valid, browser } };
}

export const signing = step({
  title: "Sign a transaction",
  action: "Sign and verify",
  why: "The server signs the transaction itself, not a digest. It does not interpret the transaction.",
  fields: { text: textField("Transaction", "Pay 100 to Grace, transaction 1") },
  after: { creating },
  run: async (caller, { creating: { wallet }, text }) => {
    const data = toUtf8(text);
    const signed = await caller.call(signTransaction, { walletId: wallet.walletId, data });
    // Do not use the key that came with the signature: it could be anyone's.
    const found = await verifyOnBothSides(caller, data, signed.signature, wallet.publicKey);
    const isSameAddress = (await deriveAddress(signed.publicKey)) === wallet.address;
    return { data, signed, ...found, isSameAddress };
  },
  says: ({ signed, verdicts, isSameAddress }) =>
    sayExpected(
      areBothValid(verdicts) && isSameAddress,
      `Both sides find the signature of ${formatBytes(signed.signature.length)} valid for the wallet's key.`,
      "Not both sides find it valid",
    ),
  shows: ({ data, signed, verdicts, isSameAddress }) => [
    bytes("Transaction", data),
    bytes("Signature", signed.signature),
    checks(
      reportBoth("the signature over the transaction", verdicts),
      reportEqual("the key that came with it has the wallet's address", isSameAddress),
    ),
    hint(`Your browser uses ${nameCode(algorithm)}, and the public key of the previous step.`),
    signatureSizes(algorithm, signed.signature),
  ],
});

export const altering = step({
  title: "Alter one byte",
  action: "Alter and verify",
  why: "An attacker changes the amount: one bit turns the first 1 into a 9.",
  after: { creating, signing },
  run: async (caller, { creating: { wallet }, signing: { data, signed } }) => {
    const change = changeByte(data, Math.max(0, data.indexOf("1".charCodeAt(0))), 8);
    const { verdicts } = await verifyOnBothSides(caller, change.after, signed.signature, wallet.publicKey);
    return { change, verdicts };
  },
  ...showTampering(
    "the signature over the altered transaction",
    () => "Neither side finds the signature valid for the altered transaction.",
  ),
});

export const swapping = step({
  title: "Swap the key",
  action: "Sign as a thief",
  why: `A thief creates a wallet, signs the same transaction, and sends it with the thief's own public key.
    The signature is genuine. Only the address reveals the thief.`,
  after: { creating, signing },
  run: async (caller, { creating: { wallet }, signing: { data } }) => {
    const { walletId } = await caller.call(createWallet, { label: "Thief" });
    const { signature, publicKey } = await caller.call(signTransaction, { walletId, data });
    const { verified, verdicts } = await verifyOnBothSides(caller, data, signature, publicKey);
    const computed = await deriveAddress(publicKey);
    const expected = wallet.address;
    const isOwner = { server: verified.address === expected, browser: computed === expected };
    return { verdicts, computed, expected, isOwner };
  },
  says: ({ verdicts, isOwner }) =>
    sayExpected(
      areBothValid(verdicts) && !isOwner.browser,
      "The thief's signature is valid, but for a different address. “Valid” alone does not protect you.",
      "The thief was accepted as the owner",
    ),
  shows: ({ verdicts, computed, expected, isOwner }) => [
    facts({
      "Wallet address": code(expected),
      "Signer's address": code(computed),
    }),
    checks(
      reportBoth("the signature, with the key that came with it", verdicts),
      reportServer("the address that it names for this key", isOwner.server, nameOwner(isOwner.server)),
      reportBrowser("the address of this key", isOwner.browser, nameOwner(isOwner.browser)),
    ),
  ],
});

export const replaying = step({
  title: "Use it twice",
  action: "Replay",
  why: `A signature proves the signer and the content, but not the time or the number of uses. Systems that execute
    transactions keep a list of executed transaction hashes. They do not use the signature, because two signatures of
    one transaction differ. A number in the transaction distinguishes two intended payments.`,
  after: { creating, signing },
  run: async ({ call }, { creating: { wallet }, signing: { data, signed } }) => {
    const { publicKey, walletId } = wallet;
    const again = await call(signTransaction, { walletId, data });
    const first = await call(verifyTransaction, { data, signature: signed.signature, publicKey });
    const second = await call(verifyTransaction, { data, signature: again.signature, publicKey });
    const transactionHash = toHex(await sha256(data));
    return {
      valid: first.valid,
      validAgain: second.valid,
      transactionHash,
      accepted: executeOnce([transactionHash, transactionHash]),
      isSameSignature: areEqual(signed.signature, again.signature),
      again: again.signature,
    };
  },
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
      "Transaction hash": code(transactionHash),
    }),
    checks(
      reportServer("the first signature, presented again", valid),
      reportServer("the second signature", validAgain),
      accepted.map((isNew, at) =>
        reportBrowser(
          `the transaction, presented for the ${at === 0 ? "first" : "second"} time`,
          isNew,
          isNew ? "accepted" : "seen before",
        ),
      ),
    ),
  ],
});

const guessing = step({
  title: "Sign with a wallet that does not exist",
  action: "Try",
  why: "Wallet IDs are random. For a guessed ID and for another user's wallet, the answer is the same.",
  run: ({ call }) =>
    expectRefusal(
      call(signTransaction, { walletId: `wallet-${makeUuid()}`, data: toUtf8("Pay 100 to Eve") }),
      "WALLET_NOT_FOUND",
    ),
  ...showRefusal(),
});

const fieldColumns: readonly Column<FoundField>[] = [
  { title: "Field", shows: ({ name, answer }) => [<code>{name}</code>, <span class="hint">{answer}</span>] },
  { title: "What it is", wraps: true, shows: ({ is }) => is ?? "not known to be public" },
  { title: "Bytes", isNumber: true, shows: ({ bytes }) => bytes !== undefined && formatNumber(bytes) },
];

export const searching = step({
  title: "Look for the private key",
  action: "Look through the answers",
  why: `An ${algorithm} private key has 4,032 bytes, or 32 as a seed. Your browser checks every field that the server
    sent above and identifies it. No call is made.`,
  after: { creating, signing },
  run: async (_caller, { creating: { label, wallet }, signing: { signed, verified } }) => {
    const parts = { address: wallet.address, label, signature: signed.signature };
    const fields = [
      ...(await findFields(CreateWalletResponseSchema, wallet, parts)),
      ...(await findFields(SignTransactionResponseSchema, signed, parts)),
      ...(await findFields(VerifyTransactionResponseSchema, verified, parts)),
    ];
    return { fields, unknownCount: fields.filter((field) => field.is === undefined).length };
  },
  says: ({ fields, unknownCount }) =>
    unknownCount === 0
      ? `All ${formatNumber(fields.length)} fields are public. None contains the private key.`
      : `${formatNumber(unknownCount)} of ${formatNumber(fields.length)} fields are not known to be public.`,
  shows: ({ fields, unknownCount }) => [
    <RecordTable
      key="fields"
      label="Fields of the answers"
      columns={fieldColumns}
      rows={fields}
      identify={({ answer, name }) => `${answer} ${name}`}
    />,
    checks(
      reportBrowser(
        "every field in the answers is public",
        unknownCount === 0,
        unknownCount === 0 ? "nothing private" : "not known",
      ),
    ),
  ],
});

/**
 * Executes each transaction once, identified by its hash.
 *
 * @returns whether each one is executed
 */
function executeOnce(hashes: readonly string[]): readonly boolean[] {
  return hashes.map((hash, at) => hashes.indexOf(hash) === at);
}

/** Not crypto.randomUUID, which exists only on secure origins. */
function makeUuid(): string {
  const digits = toHex(crypto.getRandomValues(new Uint8Array(16)));
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function nameOwner(isOwner: boolean): string {
  return isOwner ? "the wallet's" : "different";
}

export const Page = defineStory({
  title: "Wallets",
  lead: `A wallet is a key pair with an address. The server stores the private key and signs for you. With the
    address, anyone can check whether a transaction is yours.`,
  scene: {
    title: "The bytes",
    shows: ({ read }) => {
      const [wallet, signed] = [read(creating)?.wallet, read(signing)?.signed];
      const values = [
        { label: "The wallet's public key", parts: publicKeyParts, value: wallet?.publicKey },
        { label: "The transaction's signature", parts: signatureParts, value: signed?.signature },
      ];
      return <ValuePictures values={values} />;
    },
  },
  steps: [creating, signing, altering, swapping, replaying, guessing, searching],
});
