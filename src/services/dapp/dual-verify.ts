import type { DualVerifyRequest } from "#gen/dapp/dapp_service_pb.ts";
import {
  type CompositeVerification,
  importCompositePublicKey,
  importCompositePublicKeyPem,
  shortestCompositeBytes,
  verifyComposite,
} from "../../crypto/composite.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { refuseField } from "../../errors.ts";
import { checkSignatureLength, readField, readPublicKey } from "../fields.ts";

/** Length of r and s in IEEE P1363. */
const p1363Bytes = 64;
/** Minimum and maximum length of a DER SEQUENCE of two P-256 integers (X.690, section 8.3). */
const shortestDerBytes = 8;
const longestDerBytes = 72;

/**
 * Verifies two signatures over the same data and reports each one separately.
 *
 * @throws KEY_INVALID, LENGTH_INVALID naming the field
 */
export async function dualVerify(
  provider: CryptoProvider,
  input: DualVerifyRequest,
): Promise<CompositeVerification> {
  if (input.compositeSignature.length > 0) return verifyAsComposite(provider, input);
  const { data, ecdsaSignature, mldsaSignature } = input;
  const ecdsaFields = { publicKey: input.ecdsaPublicKey, publicKeyPem: input.ecdsaPublicKeyPem };
  const mldsaFields = { publicKey: input.mldsaPublicKey, publicKeyPem: input.mldsaPublicKeyPem };
  const ecdsaKey = readPublicKey(provider, "ECDSA-P256", ecdsaFields, "ecdsa");
  const mldsaKey = readPublicKey(provider, "ML-DSA-65", mldsaFields, "mldsa");
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
  input: DualVerifyRequest,
): Promise<CompositeVerification> {
  const { data, compositeSignature } = input;
  const publicKey = readCompositeKey(provider, input);
  if (compositeSignature.length < shortestCompositeBytes) {
    const problem = `is ${compositeSignature.length} bytes; a composite signature has at least ${shortestCompositeBytes}`;
    throw refuseField("compositeSignature", problem, "LENGTH_INVALID");
  }
  return verifyComposite(provider, publicKey, data, compositeSignature);
}

/** Reads the composite key from the one field that is set, as the proto's rules ensure. */
function readCompositeKey(
  provider: CryptoProvider,
  { compositePublicKey: raw, compositePublicKeyPem: pem }: DualVerifyRequest,
) {
  const isPem = pem !== "";
  return readField(
    isPem ? "compositePublicKeyPem" : "compositePublicKey",
    () => (isPem ? importCompositePublicKeyPem(provider, pem) : importCompositePublicKey(provider, raw)),
    "KEY_INVALID",
  );
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
