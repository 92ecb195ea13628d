/** A signature: made by the server, verified on both sides, broken by one byte. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { loadSigner, nameCode, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { reportBoth, sayValid } from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { publicKeyParts, signatureParts } from "../../home/cells.ts";
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
import { ValuePictures } from "../../parts/value-pictures.tsx";
import { defineStory } from "../../story.tsx";
import { type ResultOf, type StoryState, step } from "../../story-step.ts";
import { changeByte, formatBytes, formatMs, formatNumber, toUtf8 } from "../../values.ts";

const { signData, verifySignature } = PqcService.method;
const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"];
const claim = "the signature over the message";

export const signing = step({
  title: "Sign a message",
  action: "Sign",
  why: `ML-DSA is based on lattices and is fast. SLH-DSA is based only on hash functions. Its keys are tiny, and its
    signatures are large and slow to create.`,
  fields: {
    text: textField("Message", "Pay 100 to Ada"),
    algorithm: choiceField("Algorithm", "ML-DSA-65", algorithms),
  },
  plan: ({ text, algorithm }) => planCall(signData, { data: toUtf8(text), algorithm }),
  run: async ({ call }, { text, algorithm }) => {
    const data = toUtf8(text);
    const { signature, publicKey } = await call(signData, { data, algorithm });
    return { data, algorithm, signature, publicKey };
  },
  says: ({ signature, publicKey }) =>
    `The signature has ${formatBytes(signature.length)}, the public key ${formatBytes(publicKey.length)}.`,
  shows: ({ data, signature, publicKey, algorithm }) => [
    bytes("Message", data),
    bytes("Signature", signature),
    bytes("Public key", publicKey, algorithm),
    pair(signatureSizes(algorithm, signature), publicKeySizes(algorithm, publicKey)),
  ],
});

/** @returns each side's finding, and the browser's time in milliseconds */
async function verifyOnBothSides({ call }: Caller, signed: ResultOf<typeof signing>) {
  const { valid: server } = await call(verifySignature, signed);
  await loadSigner(signed.algorithm);
  const startedAt = performance.now();
  const browser = await verifyHere(signed.algorithm, signed.signature, signed.data, signed.publicKey);
  return { verdicts: { server, browser }, ms: performance.now() - startedAt };
}

export const verifying = step({
  title: "Verify it on both sides",
  action: "Verify",
  why: `A dishonest server could call any signature valid. Therefore your browser also verifies, with its own code
    and without a call.`,
  after: { signing },
  run: (caller, given) => verifyOnBothSides(caller, given.signing),
  says: ({ verdicts }) => sayValid(verdicts, "Both sides find the signature valid."),
  shows: ({ verdicts, ms }, { read }) => [
    checks(reportBoth(claim, verdicts)),
    hint(`Your browser took ${formatMs(ms)}, with ${nameCode(read(signing)?.algorithm ?? "")}.`),
  ],
});

export const breaking = step({
  title: "Break one bit of the signature",
  action: "Break and verify",
  why: "Every bit of a signature matters. Choose any byte; counting starts at 0.",
  fields: { place: numberField("Byte in the signature", "1000") },
  after: { signing },
  run: async (caller, { signing: signed, place }) => {
    // The last byte, if the signature is shorter.
    const index = Math.min(Math.max(0, Math.trunc(Number(place)) || 0), signed.signature.length - 1);
    const change = changeByte(signed.signature, index);
    const { verdicts } = await verifyOnBothSides(caller, { ...signed, signature: change.after });
    return { change, verdicts };
  },
  ...showTampering(
    claim,
    ({ change }) =>
      `With one bit of byte ${formatNumber(change.index)} changed, neither side finds it valid.`,
  ),
});

export const rewriting = step({
  title: "Or change the message",
  action: "Change and verify",
  why: "This step changes the last letter of the message.",
  after: { signing },
  run: async (caller, { signing: signed }) => {
    const change = changeByte(signed.data, signed.data.length - 1);
    const { verdicts } = await verifyOnBothSides(caller, { ...signed, data: change.after });
    return { change, verdicts };
  },
  ...showTampering(
    "the signature over the changed message",
    () => "The signature is unchanged, but it does not match this message.",
  ),
});

export const cutting = step({
  title: "Cut the signature short",
  action: "Cut and verify",
  why: `An invalid signature is an answer. Bytes that cannot be a signature are a caller's error. The server
    refuses the call with a machine-readable reason.`,
  after: { signing },
  run: ({ call }, { signing: signed }) =>
    expectRefusal(
      call(verifySignature, { ...signed, signature: signed.signature.slice(0, -1) }),
      "LENGTH_INVALID",
    ),
  ...showRefusal(),
});

/** The signature and its key; ML-DSA-65's parts have names. */
function listValues({ read }: StoryState) {
  const { algorithm = "ML-DSA-65", signature, publicKey } = read(signing) ?? {};
  const hasParts = algorithm === "ML-DSA-65";
  const whole = (value: Uint8Array | undefined) => [{ name: algorithm, bytes: value?.length ?? 0 }];
  const broken = read(breaking)?.change;
  return [
    {
      label: "Signature",
      parts: hasParts ? signatureParts : whole(signature),
      value: broken?.after ?? signature,
      changed: broken?.index,
    },
    { label: "Public key", parts: hasParts ? publicKeyParts : whole(publicKey), value: publicKey },
  ];
}

export const Page = defineStory({
  title: "Sign and verify",
  lead: `The server generates a key pair for this request, signs with the secret key, and sends the signature and the
    public key. With these two, anyone can check that the message is unchanged.`,
  scene: { title: "The bytes", shows: (story) => <ValuePictures values={listValues(story)} /> },
  steps: [signing, verifying, breaking, rewriting, cutting],
});
