/** Peers of the gateway, built from the proto's specification with only node:crypto. */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPublicKey,
  decapsulate,
  encapsulate,
  generateKeyPairSync,
  hash,
  hkdfSync,
  randomBytes,
} from "node:crypto";
import type { VpnClient } from "./devices-and-tunnels.ts";
import { rawOf } from "./node-crypto.ts";

/** Someone with their own ML-KEM-1024 key. */
export interface Peer {
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly publicKeyPem: string;
  decapsulate(ciphertext: Uint8Array): Uint8Array<ArrayBuffer>;
}

/** Generates a key pair outside the gateway. */
export function makePeer(): Peer {
  const { publicKey, privateKey } = generateKeyPairSync("ml-kem-1024");
  return {
    publicKey: rawOf(publicKey),
    publicKeyPem: publicKey.export({ format: "pem", type: "spki" }).toString(),
    decapsulate: (ciphertext) => Uint8Array.from(decapsulate(privateKey, ciphertext)),
  };
}

/** Creates a session key, and the ciphertext that transports it to the gateway. */
export async function encapsulateTo(vpn: VpnClient) {
  const { kemPublicKeyPem } = await vpn.getGatewayInfo({});
  const { sharedKey, ciphertext } = encapsulate(createPublicKey(kemPublicKeyPem));
  return { sessionKey: Uint8Array.from(sharedKey), ciphertext: Uint8Array.from(ciphertext) };
}

/** A peer whose tunnel has a session. */
export interface Connected extends Peer {
  readonly tunnelId: string;
  readonly sessionKey: Uint8Array<ArrayBuffer>;
}

/** Registers a peer with its own key, and makes a handshake. */
export async function connectPeer(vpn: VpnClient, peerName = ""): Promise<Connected> {
  const peer = makePeer();
  const { tunnelId } = await vpn.registerPeer({ peerName, publicKey: peer.publicKey });
  const { ciphertext } = await vpn.handshake({ tunnelId });
  return { ...peer, tunnelId, sessionKey: peer.decapsulate(ciphertext) };
}

/** Seals a packet: 12 bytes of initialization vector, ciphertext, 16 bytes of tag (AES-256-GCM). */
export function sealAsPeer(
  sessionKey: Uint8Array,
  data: Uint8Array,
  iv: Uint8Array = randomBytes(12),
): Uint8Array<ArrayBuffer> {
  const cipher = createCipheriv("aes-256-gcm", sessionKey, iv);
  return Uint8Array.from(Buffer.concat([iv, cipher.update(data), cipher.final(), cipher.getAuthTag()]));
}

/**
 * Opens a packet.
 *
 * @throws Error if it is not authentic
 */
export function openAsPeer(sessionKey: Uint8Array, packet: Uint8Array): Uint8Array<ArrayBuffer> {
  const decipher = createDecipheriv("aes-256-gcm", sessionKey, packet.subarray(0, 12));
  decipher.setAuthTag(packet.subarray(-16));
  return Uint8Array.from(Buffer.concat([decipher.update(packet.subarray(12, -16)), decipher.final()]));
}

/**
 * Computes the value by which a peer confirms that both sides have the same session key (proto/vpn,
 * key_confirmation).
 */
export function confirmAsPeer(sessionKey: Uint8Array, transcript: string): Uint8Array<ArrayBuffer> {
  const info = "quantum-safe-playground vpn key confirmation";
  const key = Buffer.from(hkdfSync("sha256", sessionKey, "", info, 32));
  return Uint8Array.from(createHmac("sha256", key).update(transcript).digest());
}

/** Derives the keys of a session with one key per direction from a shared secret (proto/vpn, VpnService). */
export function directionKeysAsPeer(sharedSecret: Uint8Array, transcript: string) {
  const salt = hash("sha256", transcript, "buffer");
  const derive = (use: string) =>
    new Uint8Array(hkdfSync("sha256", sharedSecret, salt, `quantum-safe-playground vpn ${use}`, 32));
  const confirmation = derive("key confirmation per direction");
  return {
    toGateway: derive("peer to gateway"),
    fromGateway: derive("gateway to peer"),
    confirmation,
    confirm: (text: string) => Uint8Array.from(createHmac("sha256", confirmation).update(text).digest()),
  };
}
