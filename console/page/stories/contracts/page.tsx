/** A signed contract, and a message signed with both a classical and a post-quantum algorithm. */
import {
  DappService,
  type DeployContractResponse,
  type DualSignResponse,
} from "#gen/dapp/dapp_service_pb.ts";
import { nameCode, sha256, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { type Check, reportBoth, reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { find, judge, refuse, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, evidence, facts, hint, pair, showRefusal, sizes } from "../../parts/show.tsx";
import { areaField, choiceField, textField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { type ResultOf, step } from "../../story-step.ts";
import { type Change, changeByte, formatBytes, fromHex, toHex, toUtf8 } from "../../values.ts";
import * as dual from "./dual.ts";

const { deployContract, dualSign, dualVerify } = DappService.method;
/** The algorithm of the half that resists quantum computers. */
const algorithm = "ML-DSA-65";
export const halves = ["ECDSA", algorithm] as const;
/** The diagram's parties. */
const [ecdsa, both, mldsa] = [0, 1, 2];
const sampleCode = `contract Escrow {
  function release() {
    require(caller == buyer);
    pay(seller, 100);
  }
}`;

/** Hashes code and verifies the signature over the hash. */
async function checkCode(code: Uint8Array, { codeHash, signature, publicKey }: DeployContractResponse) {
  const hash = await sha256(code);
  const isSigned = await verifyHere(algorithm, signature, hash, publicKey);
  return { hash, isHashEqual: toHex(hash) === codeHash, isSigned };
}

export const deploying = step({
  title: "Deploy a contract",
  action: "Deploy",
  why: `The server stores the hash, signed with a key pair generated for this contract, and erases the secret key. It
    neither runs nor stores the code.`,
  fields: { name: textField("Name", "Escrow"), code: areaField("Code", 6, sampleCode) },
  plan: (given) => planCall(deployContract, given),
  run: async ({ call }, { code, name }) => {
    const contract = await call(deployContract, { code, name });
    return { code, contract, ...(await checkCode(toUtf8(code), contract)) };
  },
  says: ({ contract, isHashEqual, isSigned }) =>
    isHashEqual && isSigned
      ? `The code's hash is signed with ${formatBytes(contract.signature.length)}; your browser finds the hash and the signature valid.`
      : "Your browser finds that the hash or the signature is not valid.",
  shows: ({ contract, ...found }) => [
    facts({ Contract: contract.contractId }),
    bytes("SHA-256 of the code", fromHex(contract.codeHash)),
    bytes("Signature over the hash", contract.signature),
    bytes("Public key", contract.publicKey, algorithm),
    showChecks(found),
  ],
  draws: (value) => [
    send(mldsa, both, "signs the hash of the code", judge(value?.isSigned, "valid", "not valid")),
  ],
});

export const rewriting = step({
  title: "Change the code by one bit",
  action: "Change and check",
  why: `A recipient of the code needs only the hash, the signature and the public key. Your browser makes no call, and
    detects the change itself.`,
  after: { deploying },
  run: async (_caller, { deploying: { code, contract } }) => {
    const before = toUtf8(code);
    const found = before.lastIndexOf("1".charCodeAt(0));
    // Turns the last 1 into a 9.
    const change = changeByte(before, found < 0 ? before.length - 1 : found, 8);
    return { change, ...(await checkCode(change.after, contract)) };
  },
  says: ({ isHashEqual, isSigned }) =>
    sayExpected(
      !isHashEqual && !isSigned,
      "The changed code has a different hash, which the signature does not cover.",
      "Your browser does not detect the change",
    ),
  shows: (found) => [
    change(found.change),
    bytes("SHA-256 of the changed code", found.hash),
    showChecks(found),
  ],
  draws: (value) => [
    find(both, "The code, one bit changed.", judge(value?.isSigned, "signed", "not signed")),
  ],
});

function showChecks({ isHashEqual, isSigned }: Readonly<Record<"isHashEqual" | "isSigned", boolean>>) {
  return checks(
    reportEqual("SHA-256 of the code", isHashEqual),
    reportBrowser("the signature over that hash", isSigned),
  );
}

export const signing = step({
  title: "Sign a message twice",
  action: "Sign",
  why: `The server signs the same bytes with ECDSA (secp256r1, SHA-256) and with ${algorithm}, using key pairs
    generated for this call. It also creates one composite signature.`,
  fields: { text: textField("Message", "Release the escrow") },
  plan: ({ text }) => planCall(dualSign, { data: toUtf8(text) }),
  run: async ({ call }, { text }) => {
    const data = toUtf8(text);
    return { data, signed: await call(dualSign, { data }) };
  },
  says: ({ signed }) =>
    `The ECDSA signature has ${formatBytes(signed.ecdsaSignature.length)}, the ${algorithm} signature ${formatBytes(signed.mldsaSignature.length)}.`,
  shows: ({ data, signed }) => [
    evidence(
      "Message and signatures",
      bytes("Message", data),
      bytes("ECDSA signature", signed.ecdsaSignature),
      bytes(`${algorithm} signature`, signed.mldsaSignature),
    ),
    pair(
      sizes("Signature, bytes", [
        { label: "ECDSA, DER", bytes: signed.ecdsaSignature.length, isClassical: true },
        { label: algorithm, bytes: signed.mldsaSignature.length },
        { label: "Composite", bytes: signed.compositeSignature.length },
      ]),
      sizes("Public key, bytes", [
        { label: "ECDSA P-256", bytes: signed.ecdsaPublicKey.length, isClassical: true },
        { label: algorithm, bytes: signed.mldsaPublicKey.length },
        { label: "Composite", bytes: signed.compositePublicKey.length },
      ]),
    ),
  ],
  draws: (value) => [
    send(ecdsa, both, withSize("signature", value?.signed.ecdsaSignature)),
    send(mldsa, both, withSize("signature", value?.signed.mldsaSignature)),
  ],
});

/** A message with two signatures and a composite of both. */
type SignedMessage = ResultOf<typeof signing>;

/** Two signatures of a message, with their keys. */
type SignedPair = Pick<
  DualSignResponse,
  "ecdsaSignature" | "mldsaSignature" | "ecdsaPublicKey" | "mldsaPublicKey"
> & { readonly data: Uint8Array };

/** Each side's result for each half. */
interface HalfVerdicts {
  readonly server: dual.Halves & { readonly bothValid: boolean };
  readonly browser: dual.Halves;
}

interface BrokenHalf extends HalfVerdicts {
  readonly half: string;
  readonly change: Change;
}

function toPair({ data, signed }: SignedMessage): SignedPair {
  const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = signed;
  return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
}

async function verifyPair({ call }: Caller, pair: SignedPair): Promise<HalfVerdicts> {
  const server = await call(dualVerify, pair);
  const { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = pair;
  const browser = {
    ecdsaValid: await dual.verifyEcdsa(ecdsaSignature, data, ecdsaPublicKey),
    mldsaValid: await verifyHere(algorithm, mldsaSignature, data, mldsaPublicKey),
  };
  return { server, browser };
}

function sayBothValid({ server, browser }: HalfVerdicts, expected: string): string {
  const areValid = [server, browser].every(({ ecdsaValid, mldsaValid }) => ecdsaValid && mldsaValid);
  return sayExpected(areValid, expected, "Not both sides find both halves valid");
}

function reportHalves({ server, browser }: HalfVerdicts): readonly Check[] {
  return [
    ...reportBoth("the ECDSA signature", { server: server.ecdsaValid, browser: browser.ecdsaValid }),
    ...reportBoth(`the ${algorithm} signature`, { server: server.mldsaValid, browser: browser.mldsaValid }),
  ];
}

export const verifying = step({
  title: "Verify each signature, on both sides",
  action: "Verify",
  why: "Each half is verified separately; the message counts as signed only if both are valid.",
  after: { signing },
  run: (caller, given) => verifyPair(caller, toPair(given.signing)),
  says: (verdicts) => sayBothValid(verdicts, "Both sides find both signatures valid."),
  shows: (verdicts) => [
    checks(reportHalves(verdicts)),
    hint(`Your browser verifies ECDSA with ${dual.curveLibrary}, ${algorithm} with ${nameCode(algorithm)}.`),
  ],
  draws: (value) => drawHalves(value),
});

export const breaking = step({
  title: "Break one half",
  action: "Break and verify",
  why: `One bit of the last byte of one signature changes. The other half remains valid, but that is not
    enough. If one algorithm is broken in the future, the other one still protects the message.`,
  fields: { half: choiceField("Half to break", "ECDSA", halves) },
  after: { signing },
  run: async (caller, { half, signing: message }): Promise<BrokenHalf> => {
    const pair = toPair(message);
    const name = half === "ECDSA" ? "ecdsaSignature" : "mldsaSignature";
    const change = changeByte(pair[name], pair[name].length - 1);
    return { half, change, ...(await verifyPair(caller, { ...pair, [name]: change.after })) };
  },
  says: sayBroken,
  shows: showBroken,
  draws: (value) => drawHalves(value),
});

export const mirroring = step({
  title: "A second ECDSA signature without the key",
  action: "Mirror and verify",
  why: `Anyone can replace s with n − s, where n is the order of the curve. This does not forge a message, but
    it changes the signature's bytes. Never use a signature, or its hash, as an identifier.`,
  after: { signing },
  run: async (caller, { signing: message }) => {
    const original = message.signed.ecdsaSignature;
    const mirrored = await dual.mirrorEcdsa(original);
    const verdicts = await verifyPair(caller, { ...toPair(message), ecdsaSignature: mirrored });
    return { original, mirrored, ...verdicts };
  },
  says: (verdicts) => sayBothValid(verdicts, "The signature's bytes differ, and both sides find it valid."),
  shows: ({ original, mirrored, ...verdicts }) => [
    bytes("As the server created it: r and s", original),
    bytes("Mirrored: r and n − s", mirrored),
    checks(reportHalves(verdicts)),
  ],
  draws: (value) => drawHalves(value),
});

async function verifyComposite(
  { call }: Caller,
  { data, signed: { compositePublicKey } }: SignedMessage,
  compositeSignature: Uint8Array,
): Promise<HalfVerdicts> {
  return {
    server: await call(dualVerify, { data, compositeSignature, compositePublicKey }),
    browser: await dual.verifyComposite(compositeSignature, data, compositePublicKey),
  };
}

export const composing = step({
  title: "Verify the composite",
  action: "Verify",
  why: `The composite id-MLDSA65-ECDSA-P256-SHA512 is one signature with one key. Both components sign a
    prefix, the composite's name, and the message's SHA-512. Your browser assembles these bytes itself.`,
  after: { signing },
  run: async (caller, { signing: message }) => {
    const { compositeSignature: signature, compositePublicKey: publicKey } = message.signed;
    return { signature, publicKey, ...(await verifyComposite(caller, message, signature)) };
  },
  says: ({ signature, ...verdicts }) =>
    sayBothValid(
      verdicts,
      `One signature of ${formatBytes(signature.length)}: both sides find both halves valid.`,
    ),
  shows: ({ signature, publicKey, ...verdicts }) => [
    evidence(
      "Composite signature and key",
      bytes("Composite signature", signature),
      bytes("Composite public key", publicKey),
    ),
    checks(reportHalves(verdicts)),
  ],
  draws: (value) => drawHalves(value),
});

export const breakingComposite = step({
  title: "Break one half of the composite",
  action: "Break and verify",
  why: "The ML-DSA half comes first in the signature, and the ECDSA half last.",
  fields: { half: choiceField("Half of the composite to break", algorithm, halves) },
  after: { signing },
  run: async (caller, { half, signing: message }): Promise<BrokenHalf> => {
    const { compositeSignature } = message.signed;
    const change = changeByte(compositeSignature, half === "ECDSA" ? compositeSignature.length - 1 : 0);
    return { half, change, ...(await verifyComposite(caller, message, change.after)) };
  },
  says: sayBroken,
  shows: showBroken,
  draws: (value) => drawHalves(value),
});

export const stripping = step({
  title: "Take the composite apart",
  action: "Strip and verify",
  why: `Anyone who takes the ${algorithm} half out of a composite cannot use it as a separate signature,
    because its signed bytes start with the composite's name. This step sends it together with the valid ECDSA
    signature from an earlier step.`,
  after: { signing },
  run: (caller, { signing: message }) => {
    const { compositeSignature, compositePublicKey } = message.signed;
    return verifyPair(caller, {
      ...toPair(message),
      mldsaSignature: dual.splitComposite(compositeSignature).mldsa.slice(),
      mldsaPublicKey: dual.takeMldsaKey(compositePublicKey).slice(),
    });
  },
  says: ({ server, browser }) =>
    sayExpected(
      !server.mldsaValid && !browser.mldsaValid,
      `Neither side accepts the half as an ${algorithm} signature of the message.`,
      "One side accepts the half as a separate signature",
    ),
  shows: (verdicts) => checks(reportHalves(verdicts)),
  draws: (value) => drawHalves(value),
});

const cutting = step({
  title: "Cut a signature short",
  action: "Cut and verify",
  why: "Bytes that cannot be a signature are a caller's error, not an invalid signature.",
  after: { signing },
  run: ({ call }, { signing: message }) => {
    const pair = toPair(message);
    return expectRefusal(
      call(dualVerify, { ...pair, mldsaSignature: pair.mldsaSignature.slice(1) }),
      "LENGTH_INVALID",
    );
  },
  ...showRefusal(),
  draws: (value) => [send(mldsa, both, "signature, one byte short", refuse(value?.reason))],
});

function sayBroken({ half, server, browser }: BrokenHalf): string {
  const isEcdsa = half === "ECDSA";
  const areNamed = [server, browser].every(
    ({ ecdsaValid, mldsaValid }) => ecdsaValid !== isEcdsa && mldsaValid === isEcdsa,
  );
  return sayExpected(
    areNamed,
    `Both sides find the ${half} half invalid and the other half valid. Together, they are not valid.`,
    "Not both sides identify the broken half",
  );
}

function showBroken({ change: changed, server, browser }: BrokenHalf) {
  // The message is signed only if both halves are valid.
  const isSigned = browser.ecdsaValid && browser.mldsaValid;
  const together = reportBoth("both together", { server: server.bothValid, browser: isSigned });
  return [change(changed), checks(reportHalves({ server, browser }), together)];
}

/** Both sides' findings about each half, and whether the message counts as signed. */
function drawHalves(found: HalfVerdicts | undefined) {
  const isValid = (half: "ecdsaValid" | "mldsaValid") => found?.server[half] && found.browser[half];
  const [isEcdsa, isMldsa] = [isValid("ecdsaValid"), isValid("mldsaValid")];
  return [
    find(ecdsa, "signature", judge(isEcdsa, "valid", "not valid")),
    find(mldsa, "signature", judge(isMldsa, "valid", "not valid")),
    find(both, "both halves", judge(found && isEcdsa && isMldsa, "signed", "not signed")),
  ];
}

export const Page = defineStory({
  title: "Contracts, signed twice",
  lead: `Code is hashed and signed, so that all parties see the same contract. A message is signed with two
    algorithms: ECDSA, which has been tested for decades, and ML-DSA, which resists quantum computers. A
    forger must break both.`,
  parties: [{ name: "ECDSA" }, { name: "Message" }, { name: algorithm }],
  steps: [
    deploying,
    rewriting,
    signing,
    verifying,
    breaking,
    mirroring,
    composing,
    breakingComposite,
    stripping,
    cutting,
  ],
});
