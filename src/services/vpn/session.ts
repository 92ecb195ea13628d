/** The gateway's end of a session: AES-256-GCM (NIST SP 800-38D) with keys that exist only in memory. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { wipe } from "../../crypto/bytes.ts";
import { NonceGenerator, nonceBytes } from "./nonce-generator.ts";
import { ReplayWindow } from "./replay-window.ts";
import type { KeyForm, SessionKeys } from "./session-keys.ts";

/** Length of the tag. */
const tagBytes = 16;
/** Bytes that a packet has in addition to its content. */
export const packetOverhead = nonceBytes + tagBytes;

/**
 * Maximum packets under one key: the limit for random nonces (SP 800-38D, section 8.3), because the peer's
 * are random.
 */
const maxSent = 2 ** 32;

/** Reasons why a packet cannot be opened, or data cannot be sealed. */
export type PacketFault = "PACKET_INVALID" | "PACKET_REFLECTED" | "PACKET_REPLAYED" | "REKEY_NEEDED";

export type PacketOutcome =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly fault: PacketFault };

/** A session with one peer. */
export class Session {
  readonly #keys: SessionKeys;
  readonly #nonces = new NonceGenerator();
  /** Only authentic packets enter the window, so that noise cannot fill the memory. */
  readonly received = new ReplayWindow();

  /**
   * @param keys the session takes ownership and overwrites them at its end
   */
  constructor(keys: SessionKeys) {
    this.#keys = keys;
  }

  /** Whether both directions share one key. */
  get keyForm(): KeyForm {
    return this.#keys.form;
  }

  /** Seals data into a packet: nonce, ciphertext, tag. */
  seal(data: Uint8Array): PacketOutcome {
    if (this.#nonces.used >= maxSent) return { ok: false, fault: "REKEY_NEEDED" };
    const nonce = this.#nonces.next();
    const cipher = createCipheriv("aes-256-gcm", this.#keys.gatewayToPeer, nonce, {
      authTagLength: tagBytes,
    });
    const bytes = Buffer.concat([nonce, cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    return { ok: true, bytes };
  }

  /** Opens a packet from the peer; accepts it only once. */
  open(packet: Uint8Array): PacketOutcome {
    const nonce = packet.subarray(0, nonceBytes);
    const end = packet.length - tagBytes;
    const decipher = createDecipheriv("aes-256-gcm", this.#keys.peerToGateway, nonce, {
      authTagLength: tagBytes,
    });
    decipher.setAuthTag(packet.subarray(end));
    const opened = decipher.update(packet.subarray(nonceBytes, end));
    try {
      decipher.final();
    } catch {
      wipe(opened);
      return { ok: false, fault: "PACKET_INVALID" };
    }
    // If both directions share a key, our own packets also authenticate.
    if (this.#nonces.has(nonce)) {
      wipe(opened);
      return { ok: false, fault: "PACKET_REFLECTED" };
    }
    const fault = this.received.add(
      Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength).toString("latin1"),
    );
    if (fault === undefined) return { ok: true, bytes: opened };
    wipe(opened);
    return { ok: false, fault };
  }

  /** HMAC-SHA-256 of the transcript: a peer that computes the same value has the same keys. */
  confirm(transcript: string): Uint8Array {
    return createHmac("sha256", this.#keys.confirmation).update(transcript).digest();
  }

  /** Overwrites the keys. */
  close(): void {
    const { peerToGateway, gatewayToPeer, confirmation } = this.#keys;
    wipe(peerToGateway, gatewayToPeer, confirmation);
    this.received.stop();
  }
}
