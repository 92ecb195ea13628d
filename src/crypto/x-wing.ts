import { kemAlgorithms } from "./algorithms.ts";
import { checkEncapsulationKey } from "./ml-kem.ts";

/** Bytes of the ML-KEM-768 key with which an X-Wing key begins; the 32 bytes of the X25519 key follow. */
const mlKemKeyBytes = kemAlgorithms["ML-KEM-768"].publicKeyBytes;

/**
 * Checks a public key as draft-connolly-cfrg-xwing-kem-11, section 4, requires before every use: its ML-KEM-768 half
 * passes the modulus check of FIPS 203, section 7.2. Any 32 bytes are an X25519 key (RFC 7748, section 5). The draft
 * does not refuse points of low order, because the result is as secure as its ML-KEM half.
 *
 * @param publicKey 1216 bytes.
 * @throws INVALID_KEY
 */
export function checkXWingPublicKey(publicKey: Uint8Array): void {
  checkEncapsulationKey("X-Wing", publicKey.subarray(0, mlKemKeyBytes));
}
