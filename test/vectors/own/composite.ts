/** Vectors of composite signatures: id-MLDSA65-ECDSA-P256-SHA512. */
import { createHash } from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { represent } from "../../../src/crypto/composite.ts";
import { encodePublicKeyPem } from "../../../src/crypto/key-encoding.ts";
import { ecdsaKey, mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const algorithm = "MLDSA65-ECDSA-P256-SHA512";
const label = utf8("COMPSIG-MLDSA65-ECDSA-P256-SHA512");
const mldsa = mlDsaKey("ML-DSA-65", "composite, ML-DSA half");
const ecdsa = ecdsaKey("composite, ECDSA half");

/** What a case signs instead of the correct bytes. */
interface Change {
  readonly mldsaValid?: boolean;
  readonly ecdsaValid?: boolean;
  readonly mldsaSignature?: (representative: Uint8Array) => Uint8Array;
  readonly ecdsaSignature?: (representative: Uint8Array) => Uint8Array;
}

function make(
  name: string,
  message: Uint8Array,
  context: Uint8Array = new Uint8Array(),
  change: Change = {},
): VectorCase {
  const { mldsaValid = true, ecdsaValid = true } = change;
  const representative = represent(algorithm, message, context);
  const mldsaSignature = change.mldsaSignature?.(representative) ?? mldsa.sign(representative, label);
  const ecdsaSignature = change.ecdsaSignature?.(representative) ?? ecdsa.sign(representative);
  const compositePublicKey = Buffer.concat([mldsa.publicKey, ecdsa.publicKey]);
  return vectorCase(name, {
    valid: mldsaValid && ecdsaValid,
    input: { mldsaKey: "mldsa", ecdsaKey: "ecdsa", message: message.toHex(), context: context.toHex() },
    intermediate: {
      preHash: createHash("sha512").update(message).digest("hex"),
      representative: Buffer.from(representative).toString("hex"),
    },
    result: {
      compositePublicKey: compositePublicKey.toString("hex"),
      compositePublicKeyPem: encodePublicKeyPem(algorithm, compositePublicKey),
      compositeSignature: Buffer.concat([mldsaSignature, ecdsaSignature]).toString("hex"),
      mldsaValid,
      ecdsaValid,
    },
  });
}

/** (r, n − s) verifies wherever (r, s) does. */
function withOtherS(der: Uint8Array): Uint8Array {
  const { r, s } = p256.Signature.fromBytes(der, "der");
  return new p256.Signature(r, p256.Point.CURVE().n - s).toBytes("der");
}

/** Signatures with and without a context, and invalid ones that must be rejected. */
export function compositeVectors(): VectorSet {
  const hello = utf8("hello");
  const context = utf8("context");
  const preHash = (bytes: Uint8Array): Uint8Array => createHash("sha512").update(bytes).digest();
  return {
    format: "qsp-vectors/1",
    name: "composite",
    specification: "docs/formats.md#composite-signature",
    note: "draft-ietf-lamps-pq-composite-sigs-19. Both halves are deterministic (RFC 6979 for ECDSA); servers sign hedged. DualSign uses the empty context, and kms any.",
    keys: { mldsa: mldsa.entry, ecdsa: ecdsa.entry },
    cases: [
      make("text", hello),
      make("the empty message", new Uint8Array()),
      make("non-ASCII text", utf8(awkwardText)),
      make("a context", hello, context),
      make("a context of 255 bytes", hello, new Uint8Array(255).fill(7)),
      make("the complementary s of ECDSA", hello, undefined, {
        ecdsaSignature: (representative) => withOtherS(ecdsa.sign(representative)),
      }),
      make("an ML-DSA half without the label as its context", hello, undefined, {
        mldsaValid: false,
        mldsaSignature: (representative) => mldsa.sign(representative),
      }),
      make("an ECDSA half over the message itself", hello, undefined, {
        ecdsaValid: false,
        ecdsaSignature: () => ecdsa.sign(hello),
      }),
      make("both halves over the pre-hash only", hello, undefined, {
        ...{ mldsaValid: false, ecdsaValid: false },
        mldsaSignature: () => mldsa.sign(preHash(hello), label),
        ecdsaSignature: () => ecdsa.sign(preHash(hello)),
      }),
      make("both halves with a different context", hello, context, {
        ...{ mldsaValid: false, ecdsaValid: false },
        mldsaSignature: () => mldsa.sign(represent(algorithm, hello, utf8("other")), label),
        ecdsaSignature: () => ecdsa.sign(represent(algorithm, hello, utf8("other"))),
      }),
    ],
  };
}
