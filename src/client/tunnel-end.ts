/**
 * A peer's end of a tunnel with one key per direction (proto/vpn, VpnService). Uses AES-256-GCM, HKDF and HMAC from
 * the Web Cryptography API, which browsers and Node provide.
 */
import { equalBytes } from "../crypto/bytes.ts";
import { toBase64 } from "./base64.ts";
import { verifySignature } from "./verify-signature.ts";

/** Bytes of the initialization vector (NIST SP 800-38D, section 8.2.2: random) and of the tag (section 5.2.1.2). */
const ivBytes = 12;
const tagBytes = 16;
/** Bytes that a packet is longer than its payload. */
export const packetOverhead = ivBytes + tagBytes;

/** The key form to request in a handshake: one key per direction. */
export const keyForm = "PER_DIRECTION";

/** Context of the gateway identity's signature over its encapsulation key. */
export const kemKeyContext = new TextEncoder().encode("quantum-safe-playground vpn kem key");

/** HKDF info labels (RFC 5869, section 3.2). */
const infos = {
  toGateway: "quantum-safe-playground vpn peer to gateway",
  fromGateway: "quantum-safe-playground vpn gateway to peer",
  confirmation: "quantum-safe-playground vpn key confirmation per direction",
} as const;

/** Algorithm and bit length of a derived key. */
type DerivedKeyForm = Parameters<SubtleCrypto["deriveKey"]>[2];

/** One end of a session; seals and opens packets. */
export interface TunnelEnd {
  /** Seals a packet for the gateway: initialization vector, ciphertext, tag. */
  seal(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Opens a packet from the gateway.
   *
   * @returns undefined if it was modified or sealed under a different key
   */
  open(packet: Uint8Array): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Computes HMAC-SHA-256 of a transcript under a key derived from the shared secret (HKDF-SHA-256). */
  confirm(transcript: string): Promise<Uint8Array>;
}

/**
 * Derives the keys of one end. Browsers allow it only in secure contexts: https, and localhost.
 *
 * @param sharedSecret 32 bytes
 * @param ownTranscript the transcript as built by this end
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
        // Web Cryptography, AES-GCM, "decrypt": every failure raises the same error.
        return undefined;
      }
    },
    async confirm(transcript) {
      return new Uint8Array(await subtle.sign("HMAC", confirmationKey, encode(transcript)));
    },
  };
}

/** Builds the transcript that the gateway signs: the tunnel, the ciphertext, and the key that it was made for. */
export async function buildTranscript(
  tunnelId: string,
  ciphertext: Uint8Array,
  peerPublicKey: Uint8Array,
): Promise<string> {
  const { sha256 } = await import("@noble/hashes/sha2.js");
  const { bytesToHex } = await import("@noble/hashes/utils.js");
  return `${tunnelId}:${toBase64(ciphertext)}:${bytesToHex(sha256(peerPublicKey))}`;
}

/** The gateway's half of a handshake, as received. */
interface GatewayHalf {
  readonly ciphertext: Uint8Array;
  readonly transcript: string;
  readonly signature: Uint8Array;
  readonly keyConfirmation: Uint8Array;
}

/** Facts that this end knows independently of the gateway. */
interface KnownFacts {
  readonly tunnelId: string;
  /** The peer's own ML-KEM-1024 key. */
  readonly publicKey: Uint8Array;
  /** The gateway's ML-DSA-65 key. */
  readonly identityPublicKey: Uint8Array;
}

/** Results of the handshake checks. All three must hold: an intermediary can satisfy any single one. */
export interface Findings {
  /** Whether the received transcript equals the one built by this end. */
  readonly isOurTranscript: boolean;
  /** Whether the gateway's identity signed the received transcript. */
  readonly isSigned: boolean;
  /** Whether the gateway derived the same session keys. */
  readonly isConfirmed: boolean;
}

/** Checks the gateway's half of a handshake. Call it before you use the session keys. */
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
