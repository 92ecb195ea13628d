import { hash } from "node:crypto";

/** Bytes of an address. */
const addressBytes = 20;

/** The address of a public key: "0x" and the hexadecimal of the first 20 bytes of SHA-256 of its raw bytes. */
export function deriveAddress(publicKey: Uint8Array): string {
  return `0x${hash("sha256", publicKey, "buffer").subarray(0, addressBytes).toString("hex")}`;
}
