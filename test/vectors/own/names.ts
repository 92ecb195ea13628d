/** Vectors of identifiers and descriptions: addresses, key IDs, token metadata, and bearer tokens. */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { deriveAddress } from "../../../src/crypto/address.ts";
import { encodeBase64url } from "../../../src/crypto/base64url.ts";
import { hashMetadata, type Metadata } from "../../../src/services/nft/metadata.ts";
import { mlDsaKey, type SigningKey } from "./keys.ts";
import { awkwardText, utf8, type Values, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

/** The members of a JWK that the thumbprint covers (RFC 7638, section 3.2). */
function canonicalJwkOf({ entry: { algorithm }, publicKey }: SigningKey): string {
  return JSON.stringify({ alg: algorithm, kty: "AKP", pub: encodeBase64url(publicKey) });
}

const keyIdOf = (key: SigningKey): string => encodeBase64url(sha256(utf8(canonicalJwkOf(key))));

/** Addresses and key IDs of public keys. */
export function publicKeyVectors(): VectorSet {
  const keys = {
    device: mlDsaKey("ML-DSA-44", "device"),
    validator: mlDsaKey("ML-DSA-65", "validator"),
    vendor: mlDsaKey("ML-DSA-87", "firmware vendor"),
  };
  return {
    format: "qsp-vectors/1",
    name: "public-key",
    specification: "docs/formats.md#addresses-and-key-ids",
    note: "keyId is the RFC 7638 thumbprint; tokens and key sets call it kid.",
    keys: Object.fromEntries(Object.entries(keys).map(([name, { entry }]) => [name, entry])),
    cases: Object.entries(keys).map(([name, key]) =>
      vectorCase(key.entry.algorithm, {
        input: { key: name },
        intermediate: { publicKeyHash: sha256(key.publicKey).toHex(), canonicalJwk: canonicalJwkOf(key) },
        result: { address: deriveAddress(key.publicKey), keyId: keyIdOf(key) },
      }),
    ),
  };
}

/** Metadata hashes and creators' signatures. */
export function metadataVectors(): VectorSet {
  const creator = mlDsaKey("ML-DSA-65", "creator");
  const make = (name: string, metadata: Metadata, signed?: (hash: string) => Uint8Array): VectorCase => {
    const canonicalJson = canonicalize(metadata) ?? "";
    const metadataHash = hashMetadata(metadata);
    const message = signed?.(metadataHash) ?? Uint8Array.fromHex(metadataHash);
    return vectorCase(name, {
      valid: signed === undefined,
      input: { key: "creator", ...metadata },
      intermediate: { canonicalJson, hashedBytes: utf8(canonicalJson).toHex() },
      result: {
        metadataHash,
        creatorAddress: deriveAddress(creator.publicKey),
        creatorSignature: creator.sign(message).toHex(),
      },
    });
  };
  const first = { name: "First", description: "A picture", artworkUri: "ipfs://bafy/1.png" };
  return {
    format: "qsp-vectors/1",
    name: "metadata",
    specification: "docs/formats.md#token-metadata",
    note: "The signatures are deterministic; servers sign hedged.",
    keys: { creator: creator.entry },
    cases: [
      make("all members", first),
      make("empty members", { name: "First", description: "", artworkUri: "" }),
      make("non-ASCII and control characters", {
        name: "é漢😀",
        description: awkwardText,
        artworkUri: "https://例え.jp/?a=1&b=<2>",
      }),
      make("a signature over the hexadecimal digits of the hash", first, utf8),
    ],
  };
}

/** Bearer tokens. */
export function tokenVectors(): VectorSet {
  const issuer = mlDsaKey("ML-DSA-65", "token issuer");
  const iat = 1767323045;
  const make = (
    name: string,
    {
      header,
      payload,
      valid = true,
      now = iat,
    }: { header: Values; payload: Values; valid?: boolean; now?: number },
  ): VectorCase => {
    const [headerJson, payloadJson] = [JSON.stringify(header), JSON.stringify(payload)];
    const signingInput = `${encodeBase64url(utf8(headerJson))}.${encodeBase64url(utf8(payloadJson))}`;
    const token = `${signingInput}.${encodeBase64url(issuer.sign(utf8(signingInput)))}`;
    return vectorCase(name, {
      valid,
      input: { key: "issuer", header, payload, now },
      intermediate: { headerJson, payloadJson, signingInput },
      result: { token },
    });
  };
  const header = { alg: "ML-DSA-65", typ: "JWT", kid: keyIdOf(issuer) };
  const payload = { sub: "ada", iat, exp: iat + 3600 };
  return {
    format: "qsp-vectors/1",
    name: "token",
    specification: "docs/formats.md#tokens",
    note: "now is the time of verification in seconds since 1970. The signatures are deterministic; servers sign hedged.",
    keys: { issuer: issuer.entry },
    cases: [
      make("from TokenService", { header, payload }),
      make("from PqcService", { header: { ...header, use: "grpc" }, payload }),
      make("for a device, in its last second", {
        header: { ...header, use: "iot" },
        payload,
        now: iat + 3599,
      }),
      make("a non-ASCII subject and a generation", {
        header,
        payload: { ...payload, sub: "é漢😀", gen: "00000000-0000-4000-8000-000000000005" },
      }),
      make("expired", { header, payload, valid: false, now: iat + 3600 }),
      make("not valid yet", { header, payload, valid: false, now: iat - 1 }),
      make("a different algorithm in the header", {
        header: { ...header, alg: "ML-DSA-44" },
        payload,
        valid: false,
      }),
      make("a different kid", { header: { ...header, kid: "x" }, payload, valid: false }),
      make("a key in the header", { header: { ...header, jwk: {} }, payload, valid: false }),
    ],
  };
}
