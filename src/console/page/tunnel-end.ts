/**
 * The browser's end of a tunnel with one key per direction, as VpnService in the proto says: AES-256-GCM, HKDF and HMAC of
 * the browser itself.
 */
import { sha256 } from "./algorithms.ts";
import { toBase64 } from "./base64.ts";
import { Failure } from "./failure.ts";
import { toHex, toUtf8 } from "./values.ts";

/** Bytes of the initialization vector (NIST SP 800-38D, section 8.2.2: random), and of the tag. */
const ivBytes = 12;
const tagBytes = 16;
/** A packet has this many bytes more than what it carries. */
export const packetOverhead = ivBytes + tagBytes;

/** The key form that a handshake requests: one key per direction. */
export const keyForm = "PER_DIRECTION";

/** The labels of HKDF (RFC 5869, section 3.2). */
const infos = {
  toGateway: toUtf8("quantum-safe-playground vpn peer to gateway"),
  fromGateway: toUtf8("quantum-safe-playground vpn gateway to peer"),
  confirmation: toUtf8("quantum-safe-playground vpn key confirmation per direction"),
} as const;

/** The algorithm of a derived key, and its length in bits. */
type DerivedKeyForm = Parameters<SubtleCrypto["deriveKey"]>[2];

/** One end of a session, which seals and opens packets. */
export interface TunnelEnd {
  /** Makes a packet for the gateway: vector, ciphertext, tag. */
  seal(data: Uint8Array): Promise<Uint8Array>;
  /** Opens a packet of the gateway. @returns undefined if it was changed, or is under another key */
  open(packet: Uint8Array): Promise<Uint8Array | undefined>;
  /** HMAC-SHA-256 of a transcript under a key that HKDF-SHA-256 derives from the shared secret. */
  confirm(transcript: string): Promise<Uint8Array>;
}

/**
 * Derives the keys of an end.
 *
 * @param sharedSecret 32 bytes.
 * @param ownTranscript the transcript that this end writes itself.
 */
export async function makeTunnelEnd(sharedSecret: Uint8Array, ownTranscript: string): Promise<TunnelEnd> {
  const subtle = requireSubtle();
  const rootKey = await subtle.importKey("raw", Uint8Array.from(sharedSecret), "HKDF", false, ["deriveKey"]);
  const salt = Uint8Array.from(await sha256(toUtf8(ownTranscript)));
  const derive = (info: keyof typeof infos, form: DerivedKeyForm, use: "encrypt" | "decrypt" | "sign") =>
    subtle.deriveKey({ name: "HKDF", hash: "SHA-256", salt, info: infos[info] }, rootKey, form, false, [use]);
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
      return new Uint8Array(await subtle.sign("HMAC", confirmationKey, toUtf8(transcript)));
    },
  };
}

/** The transcript that the gateway signs: the tunnel, the ciphertext, and the key that it is for. */
export async function buildTranscript(
  tunnelId: string,
  ciphertext: Uint8Array,
  peerPublicKey: Uint8Array,
): Promise<string> {
  return `${tunnelId}:${toBase64(ciphertext)}:${toHex(await sha256(peerPublicKey))}`;
}

/** Browsers have AES on secure origins only: https, and the machine itself. */
function requireSubtle(): SubtleCrypto {
  // The type has no undefined, as it is of secure origins.
  const subtle: SubtleCrypto | undefined = crypto.subtle;
  if (subtle !== undefined) return subtle;
  throw new Failure(
    "ORIGIN_INSECURE",
    "BROWSER",
    "Your browser encrypts on secure pages only. Open this page over https, or on the machine of the server.",
  );
}
