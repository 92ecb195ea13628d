/** Signs and verifies with ECDSA, ML-DSA and a composite of both. */
import type { DualVerifyRequest } from "#gen/dapp/dapp_service_pb.ts";
import { labelOf, represent, splitPublicKey, splitSignature } from "../../crypto/composite.ts";
import { withFreshKeyPairs } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider, KeyPair, PublicKey } from "../../crypto/provider.ts";
import { refuseField } from "../../errors.ts";
import { checkSignatureLength, readPublicKey } from "../fields.ts";

const composite = "MLDSA65-ECDSA-P256-SHA512";
const algorithms = ["ECDSA-P256", "ML-DSA-65", composite] as const;

/**
 * Signs the same bytes with ECDSA (FIPS 186-5, secp256r1, SHA-256), with ML-DSA-65 (FIPS 204, pure), and with a
 * composite of both, each with a new key pair.
 */
export function dualSign(provider: CryptoProvider, data: Uint8Array) {
  return withFreshKeyPairs(provider, algorithms, async (pairs) => {
    const [ecdsa, mldsa, both] = pairs as readonly [KeyPair, KeyPair, KeyPair];
    const [ecdsaSignature, mldsaSignature, compositeSignature] = await Promise.all([
      provider.sign(ecdsa.secretKey, data),
      provider.sign(mldsa.secretKey, data),
      provider.sign(both.secretKey, data),
    ]);
    return {
      ecdsaSignature,
      mldsaSignature,
      ecdsaPublicKey: ecdsa.publicKey.exportRaw(),
      mldsaPublicKey: mldsa.publicKey.exportRaw(),
      ecdsaPublicKeyPem: ecdsa.publicKey.toPem(),
      mldsaPublicKeyPem: mldsa.publicKey.toPem(),
      compositeSignature,
      compositePublicKey: both.publicKey.exportRaw(),
      compositePublicKeyPem: both.publicKey.toPem(),
    };
  });
}

/** Length of r and s in IEEE P1363. */
const p1363Bytes = 64;
/** Minimum and maximum length of a DER SEQUENCE of two P-256 integers (X.690, section 8.3). */
const shortestDerBytes = 8;
const longestDerBytes = 72;

/** The result for each signature, or for each half of a composite. */
interface DualVerification {
  readonly mldsaValid: boolean;
  readonly ecdsaValid: boolean;
}

/**
 * Verifies two signatures over the same data and reports each one separately.
 *
 * @throws KEY_INVALID, LENGTH_INVALID naming the field
 */
export async function dualVerify(
  provider: CryptoProvider,
  input: DualVerifyRequest,
): Promise<DualVerification> {
  if (input.compositeSignature.length > 0) return verifyAsComposite(provider, input);
  const { data, ecdsaSignature, mldsaSignature } = input;
  const ecdsaKey = readPublicKey(provider, "ECDSA-P256", input, "ecdsaPublicKey");
  const mldsaKey = readPublicKey(provider, "ML-DSA-65", input, "mldsaPublicKey");
  checkEcdsaLength(ecdsaSignature);
  checkSignatureLength("ML-DSA-65", mldsaSignature, "mldsaSignature");
  const [ecdsaValid, mldsaValid] = await Promise.all([
    verifyEcdsa(provider, ecdsaKey, data, ecdsaSignature),
    provider.verify(mldsaKey, data, mldsaSignature),
  ]);
  return { ecdsaValid, mldsaValid };
}

async function verifyAsComposite(
  provider: CryptoProvider,
  { data, compositeSignature, ...fields }: DualVerifyRequest,
): Promise<DualVerification> {
  const key = readPublicKey(provider, composite, fields, "compositePublicKey");
  checkSignatureLength(composite, compositeSignature, "compositeSignature");
  return verifyHalves(provider, key, data, compositeSignature);
}

/**
 * Verifies a composite signature (draft-ietf-lamps-pq-composite-sigs-19, section 3.3), but reports each half: a
 * demonstration shows which one was changed.
 *
 * @param publicKey a key of `composite`
 * @param signature of a length that `composite` can have
 */
export async function verifyHalves(
  provider: CryptoProvider,
  publicKey: PublicKey,
  message: Uint8Array,
  signature: Uint8Array,
  context?: Uint8Array,
): Promise<DualVerification> {
  const keys = splitPublicKey(composite, publicKey.exportRaw());
  const halves = splitSignature(composite, signature);
  const representative = represent(composite, message, context);
  const mldsaKey = provider.importPublicKey("ML-DSA-65", { raw: keys.mlDsa });
  const ecdsaKey = provider.importPublicKey("ECDSA-P256", { raw: keys.classical });
  const [mldsaValid, ecdsaValid] = await Promise.all([
    provider.verify(mldsaKey, representative, halves.mlDsa, { context: labelOf(composite) }),
    provider.verify(ecdsaKey, representative, halves.classical),
  ]);
  return { mldsaValid, ecdsaValid };
}

function checkEcdsaLength({ length }: Uint8Array): void {
  if (length === p1363Bytes || (length >= shortestDerBytes && length <= longestDerBytes)) return;
  const problem = `is ${length} bytes; an ECDSA-P256 signature has ${p1363Bytes}, or ${shortestDerBytes} to ${longestDerBytes} in DER`;
  throw refuseField("ecdsaSignature", problem, "LENGTH_INVALID");
}

/** 64 bytes may be either form: r and s, or a DER SEQUENCE with short integers. */
async function verifyEcdsa(
  provider: CryptoProvider,
  publicKey: PublicKey,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  if (await provider.verify(publicKey, data, signature)) return true;
  const isP1363 = signature.length === p1363Bytes;
  return isP1363 && provider.verify(publicKey, data, signature, { ecdsaEncoding: "ieee-p1363" });
}
