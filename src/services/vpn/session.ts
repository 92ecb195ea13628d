/** The gateway's end of a session: AES-256-GCM (NIST SP 800-38D) under keys that live in memory alone. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { wipe } from "../../crypto/bytes.ts";
import { vectorBytes as ivBytes, OwnVectors } from "./own-vectors.ts";
import type { KeyForm, SessionKeys } from "./session-keys.ts";

/** Bytes of the tag. */
const tagBytes = 16;
/** Bytes that a packet has more than what it carries. */
export const packetOverhead = ivBytes + tagBytes;

/** SP 800-38D, section 8.3: most packets under one key, as if all vectors were random; those of the peer are. */
const maxSent = 2 ** 32;
/** Packets whose vectors are remembered, so that none is taken twice; some 60 MB for one session. */
const maxReceived = 1_000_000;

/** Why a packet is not opened, or data not sealed. */
export type PacketFault = "PACKET_INVALID" | "PACKET_REFLECTED" | "PACKET_REPLAYED" | "REKEY_NEEDED";

/** What came of a packet. */
export type PacketOutcome =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly fault: PacketFault };

/** A session with one peer. */
export class Session {
  readonly #keys: SessionKeys;
  readonly #vectors = new OwnVectors();
  readonly #received = new Set<string>();

  /** @param keys the session owns them from now on and overwrites them at its end */
  constructor(keys: SessionKeys) {
    this.#keys = keys;
  }

  /** Whether both directions share one key. */
  get keyForm(): KeyForm {
    return this.#keys.form;
  }

  /** Makes a packet: vector, ciphertext, tag. */
  seal(data: Uint8Array): PacketOutcome {
    if (this.#vectors.used >= maxSent) return { ok: false, fault: "REKEY_NEEDED" };
    const iv = this.#vectors.next();
    const cipher = createCipheriv("aes-256-gcm", this.#keys.gatewayToPeer, iv, { authTagLength: tagBytes });
    const bytes = Buffer.concat([iv, cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    return { ok: true, bytes };
  }

  /** Opens a packet of the peer, once. */
  open(packet: Uint8Array): PacketOutcome {
    const iv = packet.subarray(0, ivBytes);
    const end = packet.length - tagBytes;
    const decipher = createDecipheriv("aes-256-gcm", this.#keys.peerToGateway, iv, {
      authTagLength: tagBytes,
    });
    decipher.setAuthTag(packet.subarray(end));
    const opened = decipher.update(packet.subarray(ivBytes, end));
    try {
      decipher.final();
    } catch {
      wipe(opened);
      return { ok: false, fault: "PACKET_INVALID" };
    }
    // Where both directions share a key, a packet of ours is as genuine as one of the peer.
    if (this.#vectors.has(iv)) {
      wipe(opened);
      return { ok: false, fault: "PACKET_REFLECTED" };
    }
    // Only what is genuine is remembered, so that nobody can fill the memory with noise.
    const name = Buffer.from(iv.buffer, iv.byteOffset, iv.byteLength).toString("latin1");
    if (this.#received.has(name)) return { ok: false, fault: "PACKET_REPLAYED" };
    if (this.#received.size >= maxReceived) return { ok: false, fault: "REKEY_NEEDED" };
    this.#received.add(name);
    return { ok: true, bytes: opened };
  }

  /** HMAC-SHA-256 of the transcript: a peer that computes the same has the same keys. */
  confirm(transcript: string): Uint8Array {
    return createHmac("sha256", this.#keys.confirmation).update(transcript).digest();
  }

  /** Overwrites the keys. */
  close(): void {
    const { peerToGateway, gatewayToPeer, confirmation } = this.#keys;
    wipe(peerToGateway, gatewayToPeer, confirmation);
    this.#received.clear();
  }
}
