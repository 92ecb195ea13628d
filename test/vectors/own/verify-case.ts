/** Checks a case of our own vectors with the server's code: what it computes from the input, and what it verifies. */
import { createHash } from "node:crypto";
import { checkpointMessage, hashEntry } from "../../../src/audit/chain.ts";
import { deriveAddress } from "../../../src/crypto/address.ts";
import { readHead } from "../../../src/crypto/encryption-head.ts";
import { toPublicJwk } from "../../../src/crypto/jwk.ts";
import { verifyJwt } from "../../../src/crypto/jwt.ts";
import { decryptData } from "../../../src/crypto/key-encryption.ts";
import { combineShares, readShare } from "../../../src/crypto/key-shares.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../../../src/crypto/provider.ts";
import { type Block, genesis, hashBlock } from "../../../src/services/blockchain/block.ts";
import { verifyHalves } from "../../../src/services/dapp/dual-signatures.ts";
import { hashProposal } from "../../../src/services/defi/proposal.ts";
import { isSignedBy } from "../../../src/services/defi/sign-proposal.ts";
import { buildSignedBytes, findSignatureOptions } from "../../../src/services/iot/signing-contexts.ts";
import { hashMetadata } from "../../../src/services/nft/mint.ts";
import { buildTranscript } from "../../../src/services/vpn/handshake.ts";
import { Session } from "../../../src/services/vpn/session.ts";
import { deriveSessionKeys, readKeyForm } from "../../../src/services/vpn/session-keys.ts";
import type { Values, VectorCase, VectorKey, VectorSet } from "./vector-set.ts";

/** The computed values, which must equal `result` and `valid`. */
interface Outcome {
  readonly valid: boolean;
  readonly [name: string]: unknown;
}

type Check = (provider: CryptoProvider, one: OpenCase) => Promise<Outcome>;
const checks: Readonly<Record<string, Check>> = {
  async "audit-entry"(_provider, { input, text }) {
    const entry = {
      keyId: text("keyId"),
      operation: text("operation"),
      user: text("user"),
      outcome: text("outcome") === "REFUSED" ? "REFUSED" : "OK",
      details: text("details"),
      sequence: Number(input.sequence),
      timestamp: new Date(text("timestamp")),
    } as const;
    return { valid: true, entryHash: hashEntry(entry, text("previousHash")) };
  },

  async checkpoint(provider, { input, text, result, publicKey }) {
    const checkpoint = {
      sequence: Number(input.sequence),
      entryHash: text("entryHash"),
      signedAt: new Date(text("signedAt")),
    };
    const message = checkpointMessage(checkpoint);
    return {
      valid: await provider.verify(publicKey(provider, "key"), message, result.bytes("signature")),
      statement: new TextDecoder().decode(message),
    };
  },

  async block(provider, { input, text, bytes, result, publicKey }) {
    const content = {
      index: Number(input.index),
      prevHash: text("prevHash"),
      data: bytes("data"),
      timestamp: new Date(text("timestamp")),
      validatorAddress: text("validatorAddress"),
    };
    const blockHash = hashBlock(content);
    const signature = result.bytes("signature");
    if (input.key === null) return { valid: isGenesis({ ...content, blockHash, signature }), blockHash };
    const hash = Uint8Array.fromHex(blockHash);
    return { valid: await provider.verify(publicKey(provider, "key"), hash, signature), blockHash };
  },

  async proposal(provider, { input, text, bytes, result, publicKey }) {
    const signer = publicKey(provider, "key").exportRaw();
    const expiresAt = text("expiresAt");
    const signingHash = hashProposal({
      proposalId: text("proposalId"),
      walletId: text("walletId"),
      title: text("title"),
      data: bytes("data"),
      threshold: Number(input.threshold),
      createdAt: new Date(text("createdAt")),
      expiresAt: expiresAt === "" ? undefined : new Date(expiresAt),
      ...{ status: "PENDING", signedBy: [], owner: "", executedAt: undefined },
    });
    const address = deriveAddress(signer);
    const keeper = { address, publicKey: signer, isServerHeld: false, walletId: text("walletId") };
    const valid = await isSignedBy(provider, keeper, signingHash, result.bytes("signature"));
    return { valid, signingHash: toHex(signingHash), signer: address };
  },

  async handshake(provider, { text, bytes, result, packets, publicKey, secretKey }) {
    const ciphertext = bytes("ciphertext");
    const peer = { publicKey: publicKey(provider, "peerKey").exportRaw() };
    const transcript = buildTranscript(text("tunnelId"), ciphertext, peer);
    const identity = publicKey(provider, "identityKey");
    const message = new TextEncoder().encode(transcript);
    const isSigned = await provider.verify(identity, message, result.bytes("signature"));
    const recipient = await secretKey(provider, "recipientKey");
    const sharedSecret = await provider.decapsulate(recipient, ciphertext);
    const form = readKeyForm(text("keyForm"));
    const keys = deriveSessionKeys(Uint8Array.from(sharedSecret), form, transcript);
    const session = new Session(keys);
    // The peer's end of the session opens what the gateway seals.
    const peerSession = new Session({ ...keys, peerToGateway: keys.gatewayToPeer });
    const isConfirmed = toHex(session.confirm(transcript)) === result.text("keyConfirmation");
    const opened = packets.map(({ from, valid, plaintext, ...fields }) => {
      const packet = openFields(fields).bytes("packet");
      const outcome = (from === "peer" ? session : peerSession).open(packet);
      return outcome.ok ? valid === true && toHex(outcome.bytes) === plaintext : valid === false;
    });
    if (!isSigned || !opened.every(Boolean)) throw new Error("the transcript or a packet differs");
    return { valid: isConfirmed, transcript, sharedSecret: toHex(sharedSecret) };
  },

  async "gateway-key"(provider, { bytes, result, publicKey }) {
    const message = publicKey(provider, "kemKey").exportRaw();
    const signature = result.bytes("kemPublicKeySignature");
    const context = bytes("context");
    return {
      valid: await provider.verify(publicKey(provider, "identityKey"), message, signature, { context }),
    };
  },

  async telemetry(provider, { input, text, bytes, result, publicKey }) {
    const isChallenge = text("kind") === "challenge";
    const sequence = isChallenge || input.sequence === null ? undefined : Number(input.sequence);
    const message = buildSignedBytes(bytes(isChallenge ? "challenge" : "telemetry"), sequence);
    const readingPurpose = sequence === undefined ? "READING" : "NUMBERED_READING";
    const options = findSignatureOptions(
      { hasSigningContexts: input.signingContexts === true },
      isChallenge ? "CHALLENGE" : readingPurpose,
    );
    const signature = result.bytes("signature");
    return { valid: await provider.verify(publicKey(provider, "key"), message, signature, options) };
  },

  async firmware(provider, { bytes, result, publicKey }) {
    const hash = createHash("sha256").update(bytes("firmware")).digest();
    const valid = await provider.verify(publicKey(provider, "key"), hash, result.bytes("signature"));
    return { valid, firmwareHash: toHex(hash) };
  },

  async composite(provider, { bytes, result }) {
    const algorithm = "MLDSA65-ECDSA-P256-SHA512";
    const [message, context] = [bytes("message"), bytes("context")];
    const signature = result.bytes("compositeSignature");
    const publicKey = provider.importPublicKey(algorithm, { raw: result.bytes("compositePublicKey") });
    const verdict = await verifyHalves(provider, publicKey, message, signature, context);
    const samePublicKey = provider.importPublicKey(algorithm, { pem: result.text("compositePublicKeyPem") });
    return { valid: await provider.verify(samePublicKey, message, signature, { context }), ...verdict };
  },

  async encryption(provider, { text, bytes, result, secretKey }) {
    const data = result.bytes("ciphertext");
    if (readHead(data) !== text("keyId")) throw new Error("the head names a different key");
    const opened = decryptData(provider, await secretKey(provider, "key"), {
      data,
      associatedData: bytes("associatedData"),
    });
    const plaintext = await opened.catch(() => undefined);
    const valid = plaintext !== undefined && toHex(plaintext) === text("plaintext");
    return { valid };
  },

  async "key-share"(_provider, { text }) {
    const read = async () => combineShares(text("shares").split("\n\n").map(readShare));
    const masterKey = await read().catch(() => undefined);
    return { valid: masterKey !== undefined, ...(masterKey && { masterKey: toHex(masterKey) }) };
  },

  async "public-key"(provider, { publicKey }) {
    const key = publicKey(provider, "key");
    return { valid: true, address: deriveAddress(key.exportRaw()), keyId: toPublicJwk(key).kid };
  },

  async metadata(provider, { text, result, publicKey }) {
    const [name = "", description = "", artworkUri = ""] = ["name", "description", "artworkUri"].map(text);
    const metadataHash = hashMetadata({ name, description, artworkUri });
    const key = publicKey(provider, "key");
    const hash = Uint8Array.fromHex(metadataHash);
    const valid = await provider.verify(key, hash, result.bytes("creatorSignature"));
    return { valid, metadataHash, creatorAddress: deriveAddress(key.exportRaw()) };
  },

  async token(provider, { input, result, publicKey }) {
    const key = publicKey(provider, "key");
    const publicKeys: ReadonlyMap<string, PublicKey> = new Map([[toPublicJwk(key).kid, key]]);
    const now = new Date(Number(input.now) * 1000);
    return { valid: (await verifyJwt(provider, publicKeys, result.text("token"), now)).ok };
  },
};

/** Runs the check of a vector set. */
export function verifyCase(provider: CryptoProvider, set: VectorSet, one: VectorCase): Promise<Outcome> {
  const check = checks[set.name];
  if (check === undefined) throw new Error(`${set.name} has no check`);
  return check(provider, openCase(set, one));
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function isGenesis(block: Block): boolean {
  return JSON.stringify(block) === JSON.stringify(genesis);
}

/** Values in text or hexadecimal; a missing one is an error. */
interface Fields {
  text(name: string): string;
  bytes(name: string): Uint8Array;
}

/** A case whose values in `input` and `result` are read by name. */
interface OpenCase extends Fields {
  readonly input: Values;
  readonly result: Fields;
  /** The packets of a handshake. */
  readonly packets: readonly Values[];
  /** The public key named by a member of `input`. */
  publicKey(provider: CryptoProvider, name: string): PublicKey;
  /** The secret key named by a member of `input`. */
  secretKey(provider: CryptoProvider, name: string): Promise<SecretKey>;
}

/** Opens a case of a set. */
function openCase({ keys }: VectorSet, { input, result }: VectorCase): OpenCase {
  const fields = openFields(input);
  const keyOf = (name: string): VectorKey => {
    const key = keys[fields.text(name)];
    if (key === undefined) throw new TypeError(`unknown key ${fields.text(name)}`);
    return key;
  };
  return {
    ...fields,
    input,
    result: openFields(result),
    packets: (result.packets ?? []) as readonly Values[],
    publicKey: (provider, name) => {
      const { algorithm, publicKey } = keyOf(name);
      return provider.importPublicKey(algorithm, { raw: Uint8Array.fromHex(publicKey) });
    },
    secretKey: (provider, name) => {
      const { algorithm, seed } = keyOf(name);
      return provider.importSecretKey(algorithm, { seed: Uint8Array.fromHex(seed) });
    },
  };
}

function openFields(values: Values): Fields {
  const text = (name: string): string => {
    const value = values[name];
    if (typeof value === "string") return value;
    throw new TypeError(`${name} is missing or no text`);
  };
  return { text, bytes: (name) => Uint8Array.fromHex(text(name)) };
}
