/** Peers of the gateway, built from the proto's specification without the code of the gateway. */
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
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { present } from "./answers.ts";
import type { VpnClient } from "./devices-and-tunnels.ts";
import { rawOf } from "./node-crypto.ts";

/** Generates an ML-KEM-1024 key pair outside the gateway. */
export function makePeer() {
  const { publicKey, privateKey } = generateKeyPairSync("ml-kem-1024");
  return {
    publicKey: rawOf(publicKey),
    publicKeyPem: publicKey.export({ format: "pem", type: "spki" }).toString(),
    decapsulate: (ciphertext: Uint8Array) => Uint8Array.from(decapsulate(privateKey, ciphertext)),
  };
}

export type Peer = ReturnType<typeof makePeer>;

/** Creates a session key, and the ciphertext that transports it to the gateway. */
export async function encapsulateTo(vpn: VpnClient) {
  const { kemPublicKeyPem } = await vpn.getGatewayInfo({});
  const { sharedKey, ciphertext } = encapsulate(createPublicKey(kemPublicKeyPem));
  return { sessionKey: Uint8Array.from(sharedKey), ciphertext: Uint8Array.from(ciphertext) };
}

/** Registers a peer with its own key. */
export async function registerPeer(vpn: VpnClient, peerName = "") {
  const peer = makePeer();
  const { tunnelId } = await vpn.registerPeer({ peerName, publicKey: peer.publicKey });
  return { ...peer, tunnelId };
}

/** Registers a peer with its own key, and makes a handshake. */
export async function connectPeer(vpn: VpnClient, peerName = "") {
  const peer = await registerPeer(vpn, peerName);
  const { ciphertext } = await vpn.handshake({ tunnelId: peer.tunnelId });
  return { ...peer, sessionKey: peer.decapsulate(ciphertext) };
}

export type Connected = Awaited<ReturnType<typeof connectPeer>>;

/** Registers a peer that encapsulates to the gateway, and makes a handshake. */
export async function connectGiven(vpn: VpnClient) {
  const { tunnelId } = await registerPeer(vpn);
  const { sessionKey, ciphertext } = await encapsulateTo(vpn);
  await vpn.handshake({ tunnelId, ciphertext });
  return { tunnelId, sessionKey, ciphertext };
}

/** Makes a session with a peer whose pair the gateway generates. */
export async function connectMade(vpn: VpnClient) {
  const { tunnelId, publicKey, privateKey } = await vpn.registerPeer({});
  const answer = await vpn.handshake({ tunnelId });
  const secretKey = Uint8Array.from(present(privateKey));
  const sessionKey = ml_kem1024.decapsulate(Uint8Array.from(answer.ciphertext), secretKey);
  return { tunnelId, publicKey, secretKey, sessionKey, answer };
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
