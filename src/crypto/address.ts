import { hash } from "node:crypto";

const addressBytes = 20;

/** Derives an address: "0x", then the first 20 bytes of SHA-256 over the raw public key, in hexadecimal. */
export function deriveAddress(publicKey: Uint8Array): string {
  return `0x${hash("sha256", publicKey, "buffer").subarray(0, addressBytes).toString("hex")}`;
}
