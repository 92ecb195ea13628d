/** The peer's half of a tunnel: packets, and a handshake that checks everything it receives (proto/vpn). */
import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from "node:crypto";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { equalBytes, wipe } from "../crypto/bytes.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import type { ApiClient } from "./client.ts";
import { distrustError } from "./exit-codes.ts";

/** 96 bits of initialization vector and 128 of tag (NIST SP 800-38D, sections 5.2.1.1 and 5.2.1.2). */
const ivBytes = 12;
const tagBytes = 16;
/** A handshake requests one key per direction. */
const keyForm = "PER_DIRECTION";
/** The labels of HKDF (RFC 5869, section 3.2). */
const infos = {
  toGateway: "quantum-safe-playground vpn peer to gateway",
  fromGateway: "quantum-safe-playground vpn gateway to peer",
  confirmation: "quantum-safe-playground vpn key confirmation per direction",
} as const;

/** The gateway as a peer knows it. */
export interface GatewayKeys {
  /** ML-KEM-1024. */
  readonly kem: PublicKey;
  /** ML-DSA-65. */
  readonly identity: PublicKey;
}

/** The input of a handshake. */
export interface HandshakeDeps {
  readonly provider: CryptoProvider;
  readonly server: ApiClient;
  readonly gateway: GatewayKeys;
  readonly tunnelId: string;
  /** The peer's own encapsulation key, which the transcript names. */
  readonly peerPublicKey: PublicKey;
}

/**
 * Encapsulates to the gateway's key. Checks that the answer comes from the gateway, names this tunnel, peer and
 * ciphertext, and confirms the same keys, one per direction.
 *
 * The transcript does not name the gateway's encapsulation key: the caller must have seen that the identity signed it.
 *
 * @throws CliError if a check fails
 */
export async function shakeHands(deps: HandshakeDeps): Promise<PeerSession> {
  const { provider, server, gateway, tunnelId, peerPublicKey } = deps;
  const { ciphertext, sharedSecret } = await provider.encapsulate(gateway.kem);
  const peerHash = hash("sha256", peerPublicKey.exportRaw(), "hex");
  const transcript = `${tunnelId}:${Buffer.from(ciphertext).toString("base64")}:${peerHash}`;
  const session = new PeerSession(sharedSecret, transcript);
  try {
    const answer = await server.ask(VpnService.method.handshake, {
      tunnelId,
      ciphertext: Uint8Array.from(ciphertext),
      keyForm,
    });
    if (answer.transcript !== transcript)
      throw distrustError("the gateway's transcript does not match this handshake");
    const isSigned = await provider.verify(gateway.identity, Buffer.from(transcript), answer.signature);
    if (!isSigned)
      throw distrustError(
        "the gateway did not sign the handshake with the identity that it had before; another server may be answering",
      );
    if (!session.isConfirmed(transcript, answer.keyConfirmation))
      throw distrustError("the gateway does not have the same session keys");
    return session;
  } catch (error) {
    session.close();
    throw error;
  }
}

/** The keys of a session in memory, and the packets under them. */
export class PeerSession {
  readonly #toGateway: Uint8Array;
  readonly #fromGateway: Uint8Array;
  readonly #confirmation: Uint8Array;
  /** Initialization vectors of opened packets. */
  readonly #opened = new Set<string>();

  /**
   * Derives the keys (proto/vpn, VpnService, keyForm PER_DIRECTION).
   *
   * @param sharedSecret 32 bytes; overwritten at once.
   * @param transcript that the peer writes itself.
   */
  constructor(sharedSecret: Uint8Array, transcript: string) {
    const salt = hash("sha256", transcript, "buffer");
    const derive = (info: string) => new Uint8Array(hkdfSync("sha256", sharedSecret, salt, info, 32));
    this.#toGateway = derive(infos.toGateway);
    this.#fromGateway = derive(infos.fromGateway);
    this.#confirmation = derive(infos.confirmation);
    wipe(sharedSecret);
  }

  /** Tells whether the sender of this confirmation has the same keys. */
  isConfirmed(transcript: string, confirmation: Uint8Array): boolean {
    return equalBytes(createHmac("sha256", this.#confirmation).update(transcript).digest(), confirmation);
  }

  /** @returns initialization vector, ciphertext, tag */
  seal(data: Uint8Array): Uint8Array<ArrayBuffer> {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#toGateway, iv);
    return Uint8Array.from(Buffer.concat([iv, cipher.update(data), cipher.final(), cipher.getAuthTag()]));
  }

  /** @throws CliError for a packet that is not genuine, or was opened before */
  open(packet: Uint8Array): Uint8Array {
    if (packet.length < ivBytes + tagBytes)
      throw distrustError("the gateway sent a packet that is too short");
    const iv = packet.subarray(0, ivBytes);
    const decipher = createDecipheriv("aes-256-gcm", this.#fromGateway, iv, { authTagLength: tagBytes });
    decipher.setAuthTag(packet.subarray(-tagBytes));
    let data: Uint8Array;
    try {
      data = Buffer.concat([decipher.update(packet.subarray(ivBytes, -tagBytes)), decipher.final()]);
    } catch {
      throw distrustError("the gateway sent a packet that its session key did not seal");
    }
    const name = Buffer.from(iv).toString("latin1");
    if (this.#opened.has(name)) throw distrustError("the gateway sent a packet twice");
    this.#opened.add(name);
    return data;
  }

  close(): void {
    wipe(this.#toGateway, this.#fromGateway, this.#confirmation);
  }
}
