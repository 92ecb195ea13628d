/** Checks that need nothing of the server but its answers: the standards, node:crypto and jose. */
import { createHash, createPublicKey, hash, verify } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { compactVerify, importJWK } from "jose";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { Jwk } from "#gen/pqc/jwk_pb.ts";

/** Verifies a signature with the public key of a PEM. */
export function isSignatureOf(
  publicKeyPem: string | undefined,
  signature: Uint8Array | undefined,
  message: Uint8Array,
  context = new Uint8Array(),
): boolean {
  if (publicKeyPem === undefined || signature === undefined) return false;
  // What node:crypto does with a context is newer than its types.
  const key: { key: string; context: Uint8Array } = { key: publicKeyPem, context };
  return verify(null, message, key, signature);
}

/** The raw public key of a PEM. */
export function rawKeyOf(publicKeyPem = ""): Uint8Array {
  return new Uint8Array(createPublicKey(publicKeyPem).export({ format: "raw-public" }));
}

/** The message representative that ML-DSA signs (FIPS 204, algorithm 7, line 6, with M' of algorithm 2, line 10). */
export function computeMu(publicKey: Uint8Array, message: Uint8Array, context: Uint8Array): Uint8Array {
  const tr = createHash("shake256", { outputLength: 64 }).update(publicKey).digest();
  const mu = createHash("shake256", { outputLength: 64 }).update(tr);
  return mu.update(Uint8Array.of(0, context.length)).update(context).update(message).digest();
}

/** The part of a JSON Web Signature that is signed (RFC 7515, section 5.1). */
export function toSigningInput(payload: string): string {
  const header = JSON.stringify({ alg: "ML-DSA-65" });
  return `${toBase64url(header)}.${toBase64url(payload)}`;
}

/** What jose reads in a JSON Web Signature that it verifies with a key. @throws JWSSignatureVerificationFailed */
export async function verifyWithJose(
  signingInput: string,
  signature: Uint8Array,
  { kty, alg, pub }: Jwk,
): Promise<string> {
  const key = await importJWK({ kty, alg, pub });
  const { payload } = await compactVerify(`${signingInput}.${toBase64url(signature)}`, key);
  return new TextDecoder().decode(payload);
}

function toBase64url(content: string | Uint8Array): string {
  return Buffer.from(content).toString("base64url");
}

/** Computes the hashes of the chain that these entries should make, as the proto describes it. */
export function computeHashes(entries: readonly AuditEntry[]): string[] {
  let previousHash = "0".repeat(64);
  return entries.map(({ keyId, operation, user, timestamp, details, sequence, outcome, ...origin }) => {
    const { clientAddress, requestId } = origin;
    if (timestamp === undefined) throw new Error(`entry ${sequence} has no timestamp`);
    const members = {
      ...{ keyId, operation, user, details, sequence, outcome, previousHash },
      ...(clientAddress && { clientAddress }),
      ...(requestId && { requestId }),
    };
    const instant = timestampDate(timestamp).toISOString();
    previousHash = hash("sha256", toCanonicalJson({ ...members, timestamp: instant }));
    return previousHash;
  });
}

/** RFC 8785 for objects of strings and whole numbers. */
export function toCanonicalJson(members: Readonly<Record<string, string | number>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(members).sort()));
}
