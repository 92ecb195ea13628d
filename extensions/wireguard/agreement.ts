/**
 * The bytes that the gateway signs, and the keys that both sides derive: see proto/wireguard, WireguardService.
 * README.md has them byte by byte. Server and peer both use this file, and neither I/O nor randomness.
 */
import { createHmac, hash, hkdfSync } from "node:crypto";
import { wipe } from "../../src/crypto/bytes.ts";

/** FIPS 204 contexts. The vpn gateway identity also signs handshakes and its own key, with other contexts. */
export const agreementContext = encodeText("qsp-wireguard-agreement-v1");
export const tunnelContext = encodeText("qsp-wireguard-tunnel-v1");

/** The facts of one agreement. WireGuard keys are 32 bytes, ML-KEM-1024 keys and ciphertexts 1568. */
export interface Agreement {
  readonly tunnelId: string;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  readonly epoch: number;
  readonly gatewayWireguardKey: Uint8Array;
  readonly peerWireguardKey: Uint8Array;
  /** 32 random bytes of the peer. */
  readonly nonce: Uint8Array;
  /** The peer's key for this agreement only. */
  readonly ephemeralPublicKey: Uint8Array;
  /** The key that the peer registered with vpn.VpnService. */
  readonly registeredPublicKey: Uint8Array;
  readonly ephemeralCiphertext: Uint8Array;
  readonly registeredCiphertext: Uint8Array;
}

/** Builds the bytes that the gateway signs with `agreementContext`. */
export function buildTranscript(agreement: Agreement): Uint8Array {
  return encodeFields("qsp-wireguard-agreement", [
    encodeText(agreement.tunnelId),
    encodeNumber(agreement.epoch),
    agreement.gatewayWireguardKey,
    agreement.peerWireguardKey,
    agreement.nonce,
    agreement.ephemeralPublicKey,
    agreement.registeredPublicKey,
    agreement.ephemeralCiphertext,
    agreement.registeredCiphertext,
  ]);
}

/** The facts of a tunnel at one moment. */
export interface TunnelStatement {
  readonly tunnelId: string;
  /** 32 random bytes of the peer. */
  readonly nonce: Uint8Array;
  /** Epoch of the last confirmed key; 0 if none. */
  readonly lastEpoch: number;
  readonly serverTimeMs: number;
  readonly gatewayWireguardKey: Uint8Array;
  readonly peerWireguardKey: Uint8Array;
  readonly registeredPublicKey: Uint8Array;
  /** Host and port. */
  readonly gatewayEndpoint: string;
  readonly gatewayAddress: string;
  readonly assignedIp: string;
}

/** Builds the bytes that the gateway signs with `tunnelContext`. */
export function buildTunnelStatement(statement: TunnelStatement): Uint8Array {
  return encodeFields("qsp-wireguard-tunnel", [
    encodeText(statement.tunnelId),
    statement.nonce,
    encodeNumber(statement.lastEpoch),
    encodeNumber(statement.serverTimeMs),
    statement.gatewayWireguardKey,
    statement.peerWireguardKey,
    statement.registeredPublicKey,
    encodeText(statement.gatewayEndpoint),
    encodeText(statement.gatewayAddress),
    encodeText(statement.assignedIp),
  ]);
}

/** What an agreement yields, 32 bytes each. Each side sends its own confirmation and compares the other's. */
export interface AgreedKeys {
  readonly presharedKey: Uint8Array;
  readonly peerConfirmation: Uint8Array;
  readonly gatewayConfirmation: Uint8Array;
}

/**
 * Derives the keys with HKDF-SHA-256 (RFC 5869), and the confirmations with HMAC-SHA-256. The confirmations use
 * separate keys, so neither reveals the pre-shared key, nor passes for the other side's.
 *
 * @param ephemeralSecret 32 bytes; overwritten
 * @param registeredSecret 32 bytes; overwritten
 */
export function deriveKeys(
  transcript: Uint8Array,
  ephemeralSecret: Uint8Array,
  registeredSecret: Uint8Array,
): AgreedKeys {
  const secret = Buffer.concat([ephemeralSecret, registeredSecret]);
  const digest = hash("sha256", transcript, "buffer");
  const keys = new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(), digest, 96));
  const confirm = (key: Uint8Array): Uint8Array => createHmac("sha256", key).update(digest).digest();
  try {
    return {
      presharedKey: keys.slice(0, 32),
      peerConfirmation: confirm(keys.subarray(32, 64)),
      gatewayConfirmation: confirm(keys.subarray(64)),
    };
  } finally {
    wipe(secret, keys, ephemeralSecret, registeredSecret);
  }
}

const version = 1;

/** Lengths before fields make the encoding injective: no two lists of fields have the same bytes. */
function encodeFields(label: string, fields: readonly Uint8Array[]): Uint8Array {
  const parts = fields.flatMap((field) => [encodeLength(field), field]);
  return Buffer.concat([encodeText(label), Uint8Array.of(version), ...parts]);
}

function encodeLength({ length }: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  return bytes;
}

function encodeNumber(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
