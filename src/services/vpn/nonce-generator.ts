import { type Cipheriv, createCipheriv, randomBytes } from "node:crypto";

/** Length of a nonce, which NIST SP 800-38D calls an initialization vector, and of its halves. */
export const nonceBytes = 12;
const halfBytes = 6;
/** AES, the round function, takes a block of 16 bytes. */
const blockBytes = 16;
/**
 * Four rounds turn a pseudorandom function into a strong pseudorandom permutation (Luby and Rackoff, 1988).
 */
const rounds = 4;

/**
 * Generates the nonces for one key, and recognizes them without storing them.
 *
 * NIST SP 800-38D, section 8.2.1, requires nonces that are all different and proposes a counter. This class
 * enciphers a 96-bit counter with a random secret that only the object has. That is a permutation, so all
 * nonces are different. A nonce is one of ours exactly if it deciphers to a counter value already used. To
 * anyone else, nonces look random. A peer's random nonce (section 8.2.2) is mistaken for one of ours with a
 * probability of at most 2^-64.
 */
export class NonceGenerator {
  readonly #roundFunction: Cipheriv;
  #used = 0;

  constructor() {
    this.#roundFunction = createCipheriv("aes-256-ecb", randomBytes(32), null).setAutoPadding(false);
  }

  /** Number of nonces generated. */
  get used(): number {
    return this.#used;
  }

  /**
   * @returns 12 bytes that no other call returns, for up to 2^48 calls
   */
  next(): Uint8Array {
    const nonce = Buffer.alloc(nonceBytes);
    nonce.writeUIntBE(this.#used, halfBytes, halfBytes);
    this.#used += 1;
    for (let round = 0; round < rounds; round += 1) this.#mix(nonce, round);
    return nonce;
  }

  /** Returns whether `next` returned this nonce. */
  has(nonce: Uint8Array): boolean {
    const counter = Buffer.from(nonce);
    for (let round = rounds - 1; round >= 0; round -= 1) this.#mix(counter, round);
    return counter.readUIntBE(0, halfBytes) === 0 && counter.readUIntBE(halfBytes, halfBytes) < this.#used;
  }

  /**
   * One round of a Feistel network: mixes one half of the nonce, alternately left and right, with the other
   * half.
   */
  #mix(nonce: Buffer, round: number): void {
    const [target, source] = round % 2 === 0 ? [0, halfBytes] : [halfBytes, 0];
    const block = Buffer.alloc(blockBytes);
    block[0] = round;
    nonce.copy(block, 1, source, source + halfBytes);
    const mask = this.#roundFunction.update(block);
    for (let i = 0; i < halfBytes; i += 1) nonce[target + i] = (nonce[target + i] ?? 0) ^ (mask[i] ?? 0);
  }
}
