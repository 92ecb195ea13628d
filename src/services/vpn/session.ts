/** One end of a session: AES-256-GCM (NIST SP 800-38D) under a key that lives in memory alone. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { wipe } from "../../crypto/bytes.ts";

/** Bytes of the initialization vector (SP 800-38D, section 8.2.2: random), and of the tag. */
const ivBytes = 12;
const tagBytes = 16;
/** Bytes that a packet has more than what it carries. */
export const packetOverhead = ivBytes + tagBytes;

/** SP 800-38D, section 8.3: most packets with random vectors under one key. */
const maxSent = 2 ** 32;
/** Packets whose vectors are remembered, so that none is taken twice; some 60 MB for one session. */
const maxReceived = 1_000_000;

const confirmationInfo = "quantum-safe-playground vpn key confirmation";

/** Why a packet is not opened, or data not sealed. */
export type PacketFault = "PACKET_INVALID" | "PACKET_REPLAYED" | "REKEY_NEEDED";

/** What came of a packet. */
export type PacketOutcome =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly fault: PacketFault };

/** A session with one peer. */
export class Session {
  readonly #key: Uint8Array;
  #sent = 0;
  readonly #received = new Set<string>();

  /** @param sharedSecret 32 bytes; the session owns it from now on and overwrites it at its end */
  constructor(sharedSecret: Uint8Array) {
    this.#key = sharedSecret;
  }

  /** Makes a packet: vector, ciphertext, tag. */
  seal(data: Uint8Array): PacketOutcome {
    if (this.#sent >= maxSent) return { ok: false, fault: "REKEY_NEEDED" };
    this.#sent += 1;
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, iv, { authTagLength: tagBytes });
    const bytes = Buffer.concat([iv, cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    return { ok: true, bytes };
  }

  /** Opens a packet, once. */
  open(packet: Uint8Array): PacketOutcome {
    const iv = packet.subarray(0, ivBytes);
    const end = packet.length - tagBytes;
    const decipher = createDecipheriv("aes-256-gcm", this.#key, iv, { authTagLength: tagBytes });
    decipher.setAuthTag(packet.subarray(end));
    const opened = decipher.update(packet.subarray(ivBytes, end));
    try {
      decipher.final();
    } catch {
      wipe(opened);
      return { ok: false, fault: "PACKET_INVALID" };
    }
    // Only what is genuine is remembered, so that nobody can fill the memory with noise.
    const name = Buffer.from(iv.buffer, iv.byteOffset, iv.byteLength).toString("latin1");
    if (this.#received.has(name)) return { ok: false, fault: "PACKET_REPLAYED" };
    if (this.#received.size >= maxReceived) return { ok: false, fault: "REKEY_NEEDED" };
    this.#received.add(name);
    return { ok: true, bytes: opened };
  }

  /** HMAC-SHA-256 of the transcript under a key derived from the session key: who has the one can compute the other. */
  confirm(transcript: string): Uint8Array {
    const key = new Uint8Array(hkdfSync("sha256", this.#key, new Uint8Array(), confirmationInfo, 32));
    try {
      return createHmac("sha256", key).update(transcript).digest();
    } finally {
      wipe(key);
    }
  }

  /** Overwrites the key. */
  close(): void {
    wipe(this.#key);
    this.#received.clear();
  }
}
