/** A signature: made by the server, checked on both sides, broken by one byte. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBoth, sayValid } from "../../checks.ts";
import {
  bytes,
  checks,
  hint,
  pair,
  publicKeySizes,
  showRefusal,
  showTampering,
  signatureSizes,
} from "../../parts/show.tsx";
import { choiceField, numberField, textField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { formatBytes, formatMs, formatNumber, toUtf8 } from "../../values.ts";
import { breakSignature, changeMessage, cutSignature, signMessage, verifyOnBothSides } from "./steps.ts";

const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"];
const claim = "the signature over the message";

const signing = step({
  title: "Sign a message",
  action: "Sign",
  why: `ML-DSA is based on lattices and is fast. SLH-DSA is based only on hash functions. Its keys are tiny, and its
    signatures are large and slow to create.`,
  fields: {
    text: textField("Message", "Pay 100 to Ada"),
    algorithm: choiceField("Algorithm", "ML-DSA-65", algorithms),
  },
  plan: ({ text, algorithm }) => planCall(PqcService.method.signData, { data: toUtf8(text), algorithm }),
  run: signMessage,
  says: ({ signature, publicKey }) =>
    `The signature has ${formatBytes(signature.length)}, the public key ${formatBytes(publicKey.length)}.`,
  shows: ({ data, signature, publicKey, algorithm }) => [
    bytes("Message", data),
    bytes("Signature", signature),
    bytes("Public key", publicKey, algorithm),
    pair(signatureSizes(algorithm, signature), publicKeySizes(algorithm, publicKey)),
  ],
});

const verifying = step({
  title: "Verify it, on both sides",
  action: "Verify",
  why: `A dishonest server could call any signature valid. Therefore your browser also verifies, with its own library
    and without a call.`,
  after: { signing },
  run: (caller, given) => verifyOnBothSides(caller, given.signing),
  says: ({ verdicts }) => sayValid(verdicts, "Both sides find the signature valid."),
  shows: ({ verdicts, ms }) => [
    checks(reportBoth(claim, verdicts)),
    hint(`Your browser took ${formatMs(ms)}, with ${browserLibrary}.`),
  ],
});

const breaking = step({
  title: "Break one bit of the signature",
  action: "Break and verify",
  why: "Every bit of a signature matters. Choose any byte; counting begins at 0.",
  fields: { place: numberField("Byte of the signature", "1000") },
  after: { signing },
  run: (caller, { signing: signed, place }) => breakSignature(caller, signed, place),
  ...showTampering(
    claim,
    ({ change }) =>
      `With one bit of byte ${formatNumber(change.index)} changed, neither side finds it valid.`,
  ),
});

const rewriting = step({
  title: "Or change the message",
  action: "Change and verify",
  why: "This step changes the last letter of the message.",
  after: { signing },
  run: (caller, given) => changeMessage(caller, given.signing),
  ...showTampering(
    "the signature over the changed message",
    () => "The signature is unchanged, but it does not match this message.",
  ),
});

const cutting = step({
  title: "Cut the signature short",
  action: "Cut and verify",
  why: `An invalid signature is an answer. Bytes that cannot be a signature are an error of the caller. The server
    refuses the call with a reason for programs.`,
  after: { signing },
  run: (caller, given) => cutSignature(caller, given.signing),
  ...showRefusal(),
});

export const Page = defineStory({
  title: "Sign and verify",
  lead: `The server generates a key pair for this request, signs with the secret key, and sends the signature and the
    public key. With these two, anyone can check that the message is unchanged.`,
  steps: [signing, verifying, breaking, rewriting, cutting],
});
