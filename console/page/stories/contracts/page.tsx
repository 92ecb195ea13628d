/** A signed contract, and a message that is signed with both a classical and a post-quantum algorithm. */
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { fromHex } from "../../hex.ts";
import { find, judge, refuse, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, evidence, facts, hint, pair, showRefusal, sizes } from "../../parts/show.tsx";
import { areaField, choiceField, textField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { formatBytes, toUtf8 } from "../../values.ts";
import { curveLibrary } from "./dual.ts";
import {
  algorithm,
  areBothHalvesValid,
  type BrokenHalf,
  breakComposite,
  breakHalf,
  changeCode,
  cutSignature,
  deployAndCheck,
  type HalfVerdicts,
  halves,
  mirrorSignature,
  reportHalves,
  reportTogether,
  sayBroken,
  signWithBoth,
  stripComposite,
  verifyCompositeHalves,
  verifyHalves,
} from "./steps.ts";

const { deployContract, dualSign } = DappService.method;
/** The parties of the diagram. */
const [ecdsa, both, mldsa] = [0, 1, 2];
const sampleCode = `contract Escrow {
  function release() {
    require(caller == buyer);
    pay(seller, 100);
  }
}`;

const deploying = step({
  title: "Deploy a contract",
  action: "Deploy",
  why: `The server keeps the hash, signed with a key pair made for this contract; the secret half is gone afterwards. It
    does not run the code, and does not keep it.`,
  fields: { name: textField("Human-readable name", "Escrow"), code: areaField("Code", 6, sampleCode) },
  plan: (given) => planCall(deployContract, given),
  run: deployAndCheck,
  says: ({ contract, isHashEqual, isSigned }) =>
    isHashEqual && isSigned
      ? `The code's hash is signed with ${formatBytes(contract.signature.length)}; your browser finds hash and signature valid.`
      : "Your browser finds that the hash or the signature is not valid.",
  shows: ({ contract, ...found }) => [
    facts({ Contract: contract.contractId }),
    bytes("SHA-256 of the code", fromHex(contract.codeHash)),
    bytes("Signature over the hash", contract.signature),
    bytes("Public key", contract.publicKey, algorithm),
    checkCode(found),
  ],
  draws: (value) => [
    send(mldsa, both, "signs the hash of the code", judge(value?.isSigned, "valid", "not valid")),
  ],
});

const rewriting = step({
  title: "Change the code by one bit",
  action: "Change and check",
  why: `A recipient of the code needs only the hash, the signature and the public key. Your browser makes no call, and
    detects the change itself.`,
  after: { deploying },
  run: (_caller, given) => changeCode(given.deploying),
  says: ({ isHashEqual, isSigned }) =>
    sayExpected(
      !isHashEqual && !isSigned,
      "The changed code has another hash, which the signature does not cover.",
      "Your browser does not detect the change",
    ),
  shows: (found) => [
    change(found.change),
    bytes("SHA-256 of the changed code", found.hash),
    checkCode(found),
  ],
  draws: (value) => [
    find(both, "The code, one bit changed.", judge(value?.isSigned, "signed", "not signed")),
  ],
});

function checkCode({ isHashEqual, isSigned }: Readonly<Record<"isHashEqual" | "isSigned", boolean>>) {
  return checks(
    reportEqual("SHA-256 of the code", isHashEqual),
    reportBrowser("the signature over that hash", isSigned),
  );
}

const signing = step({
  title: "Sign a message twice",
  action: "Sign",
  why: `The same bytes, with secp256r1 and SHA-256, and with ${algorithm}: each with a key pair generated for this call. In
    addition to the two signatures, the server creates one composite signature.`,
  fields: { text: textField("Message", "Release the escrow") },
  plan: ({ text }) => planCall(dualSign, { data: toUtf8(text) }),
  run: (caller, { text }) => signWithBoth(caller, text),
  says: ({ signed }) =>
    `ECDSA made ${formatBytes(signed.ecdsaSignature.length)}, ${algorithm} ${formatBytes(signed.mldsaSignature.length)}.`,
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

const verifying = step({
  title: "Verify each signature, on both sides",
  action: "Verify",
  why: "Each half counts by itself; the message counts as signed only if both are valid.",
  after: { signing },
  run: (caller, given) => verifyHalves(caller, given.signing),
  says: (verdicts) =>
    sayExpected(
      areBothHalvesValid(verdicts),
      "Both sides find both signatures valid.",
      "The sides do not find both valid",
    ),
  shows: (verdicts) => [
    checks(reportHalves(verdicts)),
    hint(`Your browser verifies ECDSA with ${curveLibrary}, ${algorithm} with ${browserLibrary}.`),
  ],
  draws: (value) => drawHalves(value),
});

const breaking = step({
  title: "Break one half",
  action: "Break and verify",
  why: `One bit of the last byte of one signature changes. The other half remains valid, but that is not enough. If one
    algorithm is broken in the future, the other one still protects the message.`,
  fields: { half: choiceField("Half to break", "ECDSA", halves) },
  after: { signing },
  run: (caller, given) => breakHalf(caller, given.signing, given.half),
  says: sayBroken,
  shows: showBroken,
  draws: (value) => drawHalves(value),
});

const mirroring = step({
  title: "Another ECDSA signature, without the key",
  action: "Mirror and verify",
  why: `Anyone can replace s with n − s, where n is the order of the curve. This does not forge a message, but changes the
    bytes of the signature. Do not use these bytes, or their hash, as an identifier.`,
  after: { signing },
  run: (caller, given) => mirrorSignature(caller, given.signing),
  says: (verdicts) =>
    sayExpected(
      areBothHalvesValid(verdicts),
      "The signature has other bytes, and both sides find it valid.",
      "The mirrored signature is not valid for both sides",
    ),
  shows: ({ original, mirrored, ...verdicts }) => [
    bytes("As the server created it: r and s", original),
    bytes("Mirrored: r and n − s", mirrored),
    checks(reportHalves(verdicts)),
  ],
  draws: (value) => drawHalves(value),
});

const composing = step({
  title: "Verify the composite",
  action: "Verify",
  why: `The composite id-MLDSA65-ECDSA-P256-SHA512 is one signature with one key. Both components sign a prefix, the name
    of the composite, and SHA-512 of the message. Your browser assembles these bytes itself.`,
  after: { signing },
  run: (caller, given) => verifyCompositeHalves(caller, given.signing),
  says: ({ signature, ...verdicts }) =>
    sayExpected(
      areBothHalvesValid(verdicts),
      `One signature of ${formatBytes(signature.length)}: both sides find both halves valid.`,
      "The sides do not find both halves valid",
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

const breakingComposite = step({
  title: "Break one half of the composite",
  action: "Break and verify",
  why: "The ML-DSA half is the first part of the signature, the ECDSA half is the last part.",
  fields: { half: choiceField("Half of the composite to break", algorithm, halves) },
  after: { signing },
  run: (caller, given) => breakComposite(caller, given.signing, given.half),
  says: sayBroken,
  shows: showBroken,
  draws: (value) => drawHalves(value),
});

const stripping = step({
  title: "Take the composite apart",
  action: "Strip and verify",
  why: `Anyone who takes the ${algorithm} half out of a composite cannot use it as a separate signature, because its signed
    bytes begin with the name of the composite. This step sends it together with the valid ECDSA signature of an earlier
    step.`,
  after: { signing },
  run: (caller, given) => stripComposite(caller, given.signing),
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
  why: "Bytes that cannot be a signature are an error of the caller, not an invalid signature.",
  after: { signing },
  run: (caller, given) => cutSignature(caller, given.signing),
  ...showRefusal(),
  draws: (value) => [send(mldsa, both, "signature, one byte short", refuse(value?.reason))],
});

function showBroken({ change: changed, ...verdicts }: BrokenHalf) {
  return [change(changed), checks(reportHalves(verdicts), reportTogether(verdicts))];
}

/** What both sides found of each half, and whether the message counts as signed. */
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
  lead: `Code is hashed and signed, so that all parties see the same contract. A message is signed with two algorithms:
    ECDSA, which has been tested for decades, and ML-DSA, which resists quantum computers. A forger must break both.`,
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
