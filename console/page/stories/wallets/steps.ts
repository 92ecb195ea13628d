/** The steps of a wallet: the browser verifies each signature itself, with the key that it got first. */
import {
  CreateWalletResponseSchema,
  SignTransactionResponseSchema,
  VerifyTransactionResponseSchema,
  WalletService,
} from "#gen/wallet/wallet_service_pb.ts";
import { sha256, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import type { Failure } from "../../failure.ts";
import { deriveAddress } from "../../signing-key.ts";
import { areEqual, changeByte, toHex, toUtf8 } from "../../values.ts";
import { findFields } from "./answers.ts";

const { createWallet, signTransaction, verifyTransaction } = WalletService.method;
export const algorithm = "ML-DSA-65";

export type Created = Awaited<ReturnType<typeof createAndCheckWallet>>;
export type Signed = Awaited<ReturnType<typeof signAndVerify>>;

export async function createAndCheckWallet({ call }: Caller, label: string) {
  const wallet = await call(createWallet, { label });
  return { label, wallet, isAddressEqual: (await deriveAddress(wallet.publicKey)) === wallet.address };
}

/** Has a transaction signed and both sides verify it. */
export async function signAndVerify(caller: Caller, { wallet }: Created, text: string) {
  const data = toUtf8(text);
  const signed = await caller.call(signTransaction, { walletId: wallet.walletId, data });
  // Do not use the key that came with the signature: it could be from anyone.
  const { verified, verdicts } = await verifyOnBothSides(caller, data, signed.signature, wallet.publicKey);
  const isSameAddress = (await deriveAddress(signed.publicKey)) === wallet.address;
  return { data, signed, verified, verdicts, isSameAddress };
}

/** Makes a 9 of the first 1. */
export async function alterTransaction(caller: Caller, { wallet }: Created, { data, signed }: Signed) {
  const change = changeByte(data, Math.max(0, data.indexOf("1".charCodeAt(0))), 8);
  const { verdicts } = await verifyOnBothSides(caller, change.after, signed.signature, wallet.publicKey);
  return { change, verdicts };
}

/** Signs the transaction with the key of another wallet. */
export async function signAsThief(caller: Caller, { wallet }: Created, { data }: Signed) {
  const thief = await caller.call(createWallet, { label: "Thief" });
  const { signature, publicKey } = await caller.call(signTransaction, { walletId: thief.walletId, data });
  const { verified, verdicts } = await verifyOnBothSides(caller, data, signature, publicKey);
  const computed = await deriveAddress(publicKey);
  const expected = wallet.address;
  const isOwner = { server: verified.address === expected, browser: computed === expected };
  return { verdicts, computed, expected, isOwner };
}

/** Presents the transaction twice, with two signatures of which each is valid. */
export async function replayTransaction({ call }: Caller, { wallet }: Created, { data, signed }: Signed) {
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
}

/** Executes each transaction once, known by its hash. @returns for each whether it is executed */
function executeOnce(hashes: readonly string[]): readonly boolean[] {
  const executed = new Set<string>();
  return hashes.map((hash) => {
    const isNew = !executed.has(hash);
    executed.add(hash);
    return isNew;
  });
}

export function signWithMissingWallet({ callRefused }: Caller, text: string): Promise<Failure> {
  return callRefused(signTransaction, { walletId: `wallet-${makeUuid()}`, data: toUtf8(text) });
}

/** Looks through the answers so far for anything that is not known to be public. */
export async function searchAnswers({ label, wallet }: Created, { signed, verified }: Signed) {
  const parts = { address: wallet.address, label, signature: signed.signature };
  const answers = [
    { name: "CreateWallet", fields: await findFields(CreateWalletResponseSchema, wallet, parts) },
    { name: "SignTransaction", fields: await findFields(SignTransactionResponseSchema, signed, parts) },
    { name: "VerifyTransaction", fields: await findFields(VerifyTransactionResponseSchema, verified, parts) },
  ];
  const fields = answers.flatMap((answer) => answer.fields);
  const unknownCount = fields.filter((field) => field.is === undefined).length;
  return { answers, count: fields.length, unknownCount };
}

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

/** Not crypto.randomUUID: browsers have it on secure origins only. */
function makeUuid(): string {
  const digits = toHex(crypto.getRandomValues(new Uint8Array(16)));
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
