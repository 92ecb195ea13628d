/** The chapters of a contract story in which data is signed twice over, and verified. */
import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import type { DualSignResponse } from "#gen/dapp/dapp_service_pb.ts";
import { flipBit } from "../support/bytes.ts";
import type { DappClient } from "./dapp-story.ts";
import { isSignatureOf, rawKeyOf } from "./outside.ts";

const data = Buffer.from("attack at dawn");
const otherData = Buffer.from("attack at noon");
const [mldsaKeyBytes, mldsaSignatureBytes] = [1952, 3309];

/** draft-ietf-lamps-pq-composite-sigs, section 6: names the algorithm in what is signed. */
const label = Buffer.from("COMPSIG-MLDSA65-ECDSA-P256-SHA512");

export function tellOfDualSigning(service: DappClient): void {
  describe("DualSign", () => {
    let signed: DualSignResponse;
    beforeAll(async () => {
      signed = await service.dualSign({ data });
    });

    it("signs with ECDSA, in DER, what node:crypto verifies", () => {
      const { status, ecdsaSignature, ecdsaPublicKey, ecdsaPublicKeyPem } = signed;
      expect(status).toBe("success");
      expect(ecdsaPublicKey).toEqual(rawKeyOf(ecdsaPublicKeyPem));
      expect(createPublicKey(ecdsaPublicKeyPem).asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
      expect([ecdsaPublicKey.length, ecdsaPublicKey[0]]).toEqual([65, 4]);
      const key = createPublicKey(ecdsaPublicKeyPem);
      expect(verify("sha256", data, { key, dsaEncoding: "der" }, ecdsaSignature)).toBe(true);
      expect(verify("sha256", otherData, { key, dsaEncoding: "der" }, ecdsaSignature)).toBe(false);
    });

    it("signs with ML-DSA-65 what node:crypto verifies", () => {
      const { mldsaSignature, mldsaPublicKey, mldsaPublicKeyPem } = signed;
      expect(mldsaPublicKey).toEqual(rawKeyOf(mldsaPublicKeyPem));
      expect([mldsaPublicKey.length, mldsaSignature.length]).toEqual([mldsaKeyBytes, mldsaSignatureBytes]);
      expect(isSignatureOf(mldsaPublicKeyPem, mldsaSignature, data)).toBe(true);
      expect(isSignatureOf(mldsaPublicKeyPem, mldsaSignature, otherData)).toBe(false);
    });

    it("makes a composite signature of which node:crypto verifies both halves", () => {
      const { compositeSignature, compositePublicKey } = signed;
      expect(compositePublicKey).toHaveLength(mldsaKeyBytes + 65);
      const verified = (message: Uint8Array) =>
        verifyComposite(compositePublicKey, message, compositeSignature);
      expect(verified(data)).toEqual({ mldsa: true, ecdsa: true });
      expect(verified(otherData)).toEqual({ mldsa: false, ecdsa: false });
    });

    it("makes all four keys anew in each call, those of the composite for it alone", async () => {
      const keys = [signed, await service.dualSign({ data })].flatMap((answer) => [
        answer.mldsaPublicKey,
        answer.ecdsaPublicKey,
        answer.compositePublicKey.subarray(0, mldsaKeyBytes),
        answer.compositePublicKey.subarray(mldsaKeyBytes),
      ]);
      expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(8);
    });
  });
}

/** What DualVerify takes: a pair of signatures, with their keys raw or as PEM, or a composite. */
type Input = Parameters<DappClient["dualVerify"]>[0];

export function tellOfDualVerifying(service: DappClient): void {
  describe("DualVerify", () => {
    let signed: DualSignResponse;
    beforeAll(async () => {
      signed = await service.dualSign({ data });
    });
    const rawPair = (): Input => {
      const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = signed;
      return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
    };
    const pemPair = (): Input => {
      const { ecdsaSignature, mldsaSignature, ecdsaPublicKeyPem, mldsaPublicKeyPem } = signed;
      return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKeyPem, mldsaPublicKeyPem };
    };
    const composite = (): Input => {
      const { compositeSignature, compositePublicKey } = signed;
      return { data, compositeSignature, compositePublicKey };
    };

    const validInputs: readonly (readonly [title: string, input: () => Input])[] = [
      ["what DualSign signed, with raw keys", rawPair],
      ["what DualSign signed, with keys as PEM", pemPair],
      ["the composite that DualSign made", composite],
      ["what was signed outside, with ECDSA as 64 bytes of r and s", signPairOutside],
      ["a composite that was made outside", signCompositeOutside],
    ];
    it.each(validInputs)("answers valid on both sides to %s", async (_title, input) => {
      expect(await service.dualVerify(input())).toEqual({
        $typeName: "dapp.DualVerifyResponse",
        status: "success",
        ecdsaValid: true,
        mldsaValid: true,
        bothValid: true,
      });
    });

    const wrongOrders: readonly (readonly [
      valid: string,
      title: string,
      answer: { ecdsaValid: boolean; mldsaValid: boolean },
      input: () => Input,
    ])[] = [
      [
        "only ML-DSA",
        "one bit of the ECDSA signature changed",
        { ecdsaValid: false, mldsaValid: true },
        () => ({ ...rawPair(), ecdsaSignature: flipBit(signed.ecdsaSignature, 20) }),
      ],
      [
        "only ECDSA",
        "one bit of the ML-DSA signature changed",
        { ecdsaValid: true, mldsaValid: false },
        () => ({ ...rawPair(), mldsaSignature: flipBit(signed.mldsaSignature, 20) }),
      ],
      [
        "neither",
        "other data",
        { ecdsaValid: false, mldsaValid: false },
        () => ({ ...rawPair(), data: otherData }),
      ],
      [
        "only ML-DSA",
        "one bit of a composite's ECDSA half changed",
        { ecdsaValid: false, mldsaValid: true },
        () => ({
          ...composite(),
          compositeSignature: flipBit(signed.compositeSignature, mldsaSignatureBytes + 20),
        }),
      ],
      [
        "only ECDSA",
        "one bit of a composite's ML-DSA half changed",
        { ecdsaValid: true, mldsaValid: false },
        () => ({ ...composite(), compositeSignature: flipBit(signed.compositeSignature, 20) }),
      ],
      [
        "neither",
        "the two signatures put together as if they were a composite",
        { ecdsaValid: false, mldsaValid: false },
        () => ({
          data,
          compositeSignature: Buffer.concat([signed.mldsaSignature, signed.ecdsaSignature]),
          compositePublicKey: Buffer.concat([signed.mldsaPublicKey, signed.ecdsaPublicKey]),
        }),
      ],
    ];
    it.each(wrongOrders)("answers that %s is valid to %s", async (_valid, _title, answer, input) => {
      expect(await service.dualVerify(input())).toMatchObject({ ...answer, bothValid: false });
    });
  });
}

function signPairOutside(): Input {
  const ecdsa = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const mldsa = generateKeyPairSync("ml-dsa-65");
  return {
    data,
    ecdsaSignature: sign("sha256", data, { key: ecdsa.privateKey, dsaEncoding: "ieee-p1363" }),
    mldsaSignature: sign(null, data, mldsa.privateKey),
    ecdsaPublicKey: toRaw(ecdsa.publicKey),
    mldsaPublicKey: toRaw(mldsa.publicKey),
  };
}

function signCompositeOutside(): Input {
  const ecdsa = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const mldsa = generateKeyPairSync("ml-dsa-65");
  const representative = representMessage(data);
  return {
    data,
    compositeSignature: Buffer.concat([
      sign(null, representative, { key: mldsa.privateKey, context: label }),
      sign("sha256", representative, ecdsa.privateKey),
    ]),
    compositePublicKey: Buffer.concat([toRaw(mldsa.publicKey), toRaw(ecdsa.publicKey)]),
  };
}

/** Verifies each half of a composite (draft-ietf-lamps-pq-composite-sigs, section 3.3). */
function verifyComposite(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) {
  const [mldsaKey, point] = [publicKey.subarray(0, mldsaKeyBytes), publicKey.subarray(mldsaKeyBytes)];
  const mldsa = createPublicKey({ key: mldsaKey, format: "raw-public", asymmetricKeyType: "ml-dsa-65" });
  const ecdsa = createPublicKey({
    ...{ key: point, format: "raw-public", asymmetricKeyType: "ec", namedCurve: "P-256" },
  });
  const representative = representMessage(message);
  return {
    mldsa: verify(
      null,
      representative,
      { key: mldsa, context: label },
      signature.subarray(0, mldsaSignatureBytes),
    ),
    ecdsa: verify("sha256", representative, ecdsa, signature.subarray(mldsaSignatureBytes)),
  };
}

/** M' = Prefix ‖ Label ‖ len(ctx) ‖ ctx ‖ SHA-512(M), with an empty ctx (the same draft, section 3.2, step 2). */
function representMessage(message: Uint8Array): Buffer {
  const prefix = Buffer.from("CompositeAlgorithmSignatures2025");
  return Buffer.concat([prefix, label, Uint8Array.of(0), hash("sha512", message, "buffer")]);
}

function toRaw(publicKey: KeyObject): Uint8Array {
  return new Uint8Array(publicKey.export({ format: "raw-public" }));
}
