/**
 * A peer's end of a tunnel with one key per direction, as VpnService in the proto says: AES-256-GCM, HKDF and HMAC of Web
 * Cryptography, which browsers and Node have.
 */
import { equalBytes } from "../crypto/bytes.ts";
import { toBase64 } from "./base64.ts";
import { verifySignature } from "./verify-signature.ts";

/** Bytes of the initialization vector (NIST SP 800-38D, section 8.2.2: random), and of the tag (section 5.2.1.2). */
const ivBytes = 12;
const tagBytes = 16;
/** A packet has this many bytes more than what it carries. */
export const packetOverhead = ivBytes + tagBytes;

/** The key form that a handshake requests: one key per direction. */
export const keyForm = "PER_DIRECTION";

/** The context of the identity's signature over the gateway's encapsulation key. */
export const kemKeyContext = new TextEncoder().encode("quantum-safe-playground vpn kem key");

/** The labels of HKDF (RFC 5869, section 3.2). */
const infos = {
  toGateway: "quantum-safe-playground vpn peer to gateway",
  fromGateway: "quantum-safe-playground vpn gateway to peer",
  confirmation: "quantum-safe-playground vpn key confirmation per direction",
} as const;

/** The algorithm of a derived key, and its length in bits. */
type DerivedKeyForm = Parameters<SubtleCrypto["deriveKey"]>[2];

/** One end of a session, which seals and opens packets. */
export interface TunnelEnd {
  /** Makes a packet for the gateway: vector, ciphertext, tag. */
  seal(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /** Opens a packet of the gateway. @returns undefined if it was changed, or is under another key */
  open(packet: Uint8Array): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** HMAC-SHA-256 of a transcript under a key that HKDF-SHA-256 derives from the shared secret. */
  confirm(transcript: string): Promise<Uint8Array>;
}

/**
 * Derives the keys of an end. Browsers can do so on secure origins only: https, and the machine itself.
 *
 * @param sharedSecret 32 bytes.
 * @param ownTranscript the transcript that this end writes itself.
 */
export async function makeTunnelEnd(sharedSecret: Uint8Array, ownTranscript: string): Promise<TunnelEnd> {
  const { subtle } = crypto;
  const encode = (text: string) => new TextEncoder().encode(text);
  const rootKey = await subtle.importKey("raw", Uint8Array.from(sharedSecret), "HKDF", false, ["deriveKey"]);
  const salt = await subtle.digest("SHA-256", encode(ownTranscript));
  const derive = (info: keyof typeof infos, form: DerivedKeyForm, use: "encrypt" | "decrypt" | "sign") => {
    const hkdf = { name: "HKDF", hash: "SHA-256", salt, info: encode(infos[info]) };
    return subtle.deriveKey(hkdf, rootKey, form, false, [use]);
  };
  const aes = { name: "AES-GCM", length: 256 };
  const toGateway = await derive("toGateway", aes, "encrypt");
  const fromGateway = await derive("fromGateway", aes, "decrypt");
  const hmac = { name: "HMAC", hash: "SHA-256", length: 256 };
  const confirmationKey = await derive("confirmation", hmac, "sign");
  return {
    async seal(data) {
      const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
      const sealed = await subtle.encrypt({ name: "AES-GCM", iv }, toGateway, Uint8Array.from(data));
      const packet = new Uint8Array(ivBytes + sealed.byteLength);
      packet.set(iv);
      packet.set(new Uint8Array(sealed), ivBytes);
      return packet;
    },
    async open(packet) {
      const iv = packet.slice(0, ivBytes);
      try {
        return new Uint8Array(
          await subtle.decrypt({ name: "AES-GCM", iv }, fromGateway, packet.slice(ivBytes)),
        );
      } catch {
        // Web Cryptography, AES-GCM, "decrypt": whatever is wrong is one and the same error.
        return undefined;
      }
    },
    async confirm(transcript) {
      return new Uint8Array(await subtle.sign("HMAC", confirmationKey, encode(transcript)));
    },
  };
}

/** The transcript that the gateway signs: the tunnel, the ciphertext, and the key that it is for. */
export async function buildTranscript(
  tunnelId: string,
  ciphertext: Uint8Array,
  peerPublicKey: Uint8Array,
): Promise<string> {
  const { sha256 } = await import("@noble/hashes/sha2.js");
  const { bytesToHex } = await import("@noble/hashes/utils.js");
  return `${tunnelId}:${toBase64(ciphertext)}:${bytesToHex(sha256(peerPublicKey))}`;
}

/** The gateway's half of a handshake, as it arrived. */
export interface GatewayHalf {
  readonly ciphertext: Uint8Array;
  readonly transcript: string;
  readonly signature: Uint8Array;
  readonly keyConfirmation: Uint8Array;
}

/** The facts that this end knows without the other side. */
export interface KnownFacts {
  readonly tunnelId: string;
  /** The peer's own ML-KEM-1024 key. */
  readonly publicKey: Uint8Array;
  /** The gateway's ML-DSA-65 key. */
  readonly identityPublicKey: Uint8Array;
}

/** What the checks of a handshake found. All three must hold: an intermediary can fulfil any single one. */
export interface Findings {
  /** Whether the transcript equals the one that this end writes itself. */
  readonly isOurTranscript: boolean;
  /** Whether the gateway's identity signed the transcript that arrived. */
  readonly isSigned: boolean;
  /** Whether the other side has the same session key. */
  readonly isConfirmed: boolean;
}

/** Checks the gateway's half before this end uses the key. */
export async function checkHandshake(
  { ciphertext, transcript, signature, keyConfirmation }: GatewayHalf,
  end: TunnelEnd,
  { tunnelId, publicKey, identityPublicKey }: KnownFacts,
): Promise<Findings> {
  const message = new TextEncoder().encode(transcript);
  const confirmation = await end.confirm(transcript);
  return {
    isOurTranscript: transcript === (await buildTranscript(tunnelId, ciphertext, publicKey)),
    isSigned: await verifySignature({
      algorithm: "ML-DSA-65",
      publicKey: identityPublicKey,
      message,
      signature,
    }),
    isConfirmed: equalBytes(keyConfirmation, confirmation),
  };
}
