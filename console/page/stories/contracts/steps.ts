/** The steps of contracts: code is hashed and signed, and a message is signed with two algorithms at once. */
import {
  DappService,
  type DeployContractResponse,
  type DualSignResponse,
} from "#gen/dapp/dapp_service_pb.ts";
import { loadSigner, sha256, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { type Check, reportBoth, sayExpected } from "../../checks.ts";
import type { Failure } from "../../failure.ts";
import { type Change, changeByte, toHex, toUtf8 } from "../../values.ts";
import {
  type Halves,
  mirrorEcdsa,
  splitComposite,
  takeMldsaKey,
  verifyComposite,
  verifyEcdsa,
} from "./dual.ts";

const { deployContract, dualSign, dualVerify } = DappService.method;
/** The algorithm of the half that withstands a quantum computer. */
export const algorithm = "ML-DSA-65";
export const halves = ["ECDSA", algorithm] as const;

interface Deployed {
  readonly code: string;
  readonly contract: DeployContractResponse;
}

/** A message with two signatures and a composite of both. */
export interface SignedMessage {
  readonly data: Uint8Array;
  readonly signed: DualSignResponse;
}

/** Two signatures of a message, with their keys. */
type SignedPair = Pick<
  DualSignResponse,
  "ecdsaSignature" | "mldsaSignature" | "ecdsaPublicKey" | "mldsaPublicKey"
> & { readonly data: Uint8Array };

/** The results of each side for each half. */
export interface HalfVerdicts {
  readonly server: Halves & { readonly bothValid: boolean };
  readonly browser: Halves;
}

export interface BrokenHalf extends HalfVerdicts {
  readonly half: string;
  readonly change: Change;
}

/** Deploys code, and checks its hash and the signature over it. */
export async function deployAndCheck(
  { call }: Caller,
  { code, name }: { readonly code: string; readonly name: string },
) {
  const contract = await call(deployContract, { code, name });
  return { code, contract, ...(await checkCode(toUtf8(code), contract)) };
}

/** Makes a 9 of the last 1 in the code, and checks the result without the server. */
export async function changeCode({ code, contract }: Deployed) {
  const before = toUtf8(code);
  const found = before.lastIndexOf("1".charCodeAt(0));
  const change = changeByte(before, found < 0 ? before.length - 1 : found, 8);
  return { change, ...(await checkCode(change.after, contract)) };
}

async function checkCode(code: Uint8Array, contract: DeployContractResponse) {
  const hash = await sha256(code);
  return {
    hash,
    isHashEqual: toHex(hash) === contract.codeHash,
    isSigned: await verifyHere(algorithm, contract.signature, hash, contract.publicKey),
  };
}

export async function signWithBoth({ call }: Caller, text: string): Promise<SignedMessage> {
  const data = toUtf8(text);
  return { data, signed: await call(dualSign, { data }) };
}

export function verifyHalves(caller: Caller, message: SignedMessage): Promise<HalfVerdicts> {
  return verifyPairOnBothSides(caller, toPair(message));
}

/** Changes one bit of one signature. */
export async function breakHalf(caller: Caller, message: SignedMessage, half: string): Promise<BrokenHalf> {
  const pair = toPair(message);
  const name = half === "ECDSA" ? "ecdsaSignature" : "mldsaSignature";
  const change = changeByte(pair[name], pair[name].length - 1);
  return { half, change, ...(await verifyPairOnBothSides(caller, { ...pair, [name]: change.after })) };
}

/** Makes another ECDSA signature of the message without the secret key. */
export async function mirrorSignature(caller: Caller, message: SignedMessage) {
  const original = message.signed.ecdsaSignature;
  const mirrored = await mirrorEcdsa(original);
  const pair = { ...toPair(message), ecdsaSignature: mirrored };
  return { original, mirrored, ...(await verifyPairOnBothSides(caller, pair)) };
}

export function cutSignature({ callRefused }: Caller, message: SignedMessage): Promise<Failure> {
  const pair = toPair(message);
  return callRefused(dualVerify, { ...pair, mldsaSignature: pair.mldsaSignature.slice(1) });
}

export async function verifyCompositeHalves(caller: Caller, message: SignedMessage) {
  const { compositeSignature: signature, compositePublicKey: publicKey } = message.signed;
  return { signature, publicKey, ...(await verifyCompositeOnBothSides(caller, message, signature)) };
}

/** Changes one bit of one half of the composite. */
export async function breakComposite(
  caller: Caller,
  message: SignedMessage,
  half: string,
): Promise<BrokenHalf> {
  const { compositeSignature } = message.signed;
  // The ML-DSA half is the first part of the signature, the ECDSA half is the last part.
  const change = changeByte(compositeSignature, half === "ECDSA" ? compositeSignature.length - 1 : 0);
  return { half, change, ...(await verifyCompositeOnBothSides(caller, message, change.after)) };
}

/** Presents the ML-DSA half of the composite as a signature by itself. */
export function stripComposite(caller: Caller, message: SignedMessage): Promise<HalfVerdicts> {
  const { compositeSignature, compositePublicKey } = message.signed;
  return verifyPairOnBothSides(caller, {
    ...toPair(message),
    mldsaSignature: splitComposite(compositeSignature).mldsa.slice(),
    mldsaPublicKey: takeMldsaKey(compositePublicKey).slice(),
  });
}

export function areBothHalvesValid({ server, browser }: HalfVerdicts): boolean {
  return [server, browser].every(({ ecdsaValid, mldsaValid }) => ecdsaValid && mldsaValid);
}

/** The results of each side for each half. */
export function reportHalves({ server, browser }: HalfVerdicts): readonly Check[] {
  return [
    ...reportBoth("the ECDSA signature", { server: server.ecdsaValid, browser: browser.ecdsaValid }),
    ...reportBoth(`the ${algorithm} signature`, { server: server.mldsaValid, browser: browser.mldsaValid }),
  ];
}

/** The verdict of each side on the message, which is signed if both halves are valid. */
export function reportTogether({ server, browser }: HalfVerdicts): readonly Check[] {
  const isSigned = browser.ecdsaValid && browser.mldsaValid;
  return reportBoth("both together", { server: server.bothValid, browser: isSigned });
}

export function sayBroken({ half, server, browser }: BrokenHalf): string {
  const isEcdsa = half === "ECDSA";
  const areNamed = [server, browser].every(
    ({ ecdsaValid, mldsaValid }) => ecdsaValid !== isEcdsa && mldsaValid === isEcdsa,
  );
  return sayExpected(
    areNamed,
    `Both sides find the ${half} half not valid, and the other valid. Together, they are not valid.`,
    "The sides do not both name the half that is broken",
  );
}

function toPair({ data, signed }: SignedMessage): SignedPair {
  const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = signed;
  return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
}

async function verifyPairOnBothSides({ call }: Caller, pair: SignedPair): Promise<HalfVerdicts> {
  const server = await call(dualVerify, pair);
  const { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = pair;
  const signer = await loadSigner(algorithm);
  const browser = {
    ecdsaValid: await verifyEcdsa(ecdsaSignature, data, ecdsaPublicKey),
    mldsaValid: signer.verify(mldsaSignature, data, mldsaPublicKey),
  };
  return { server, browser };
}

async function verifyCompositeOnBothSides(
  { call }: Caller,
  { data, signed: { compositePublicKey } }: SignedMessage,
  compositeSignature: Uint8Array,
): Promise<HalfVerdicts> {
  return {
    server: await call(dualVerify, { data, compositeSignature, compositePublicKey }),
    browser: await verifyComposite(compositeSignature, data, compositePublicKey),
  };
}
