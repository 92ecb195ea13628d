/**
 * Tables in shared memory that find numbers by a name, such as the address of a client. A name has one place in a set of
 * eight, so a search has the same cost however many names there are.
 */

/** Places that a name may have. */
export const setSize = 8;

/**
 * Hashes a name.
 *
 * @param seed a random number of 32 bits, so that callers cannot choose names that share a place
 * @returns a whole number from 1 to 2^53
 */
export function hashName(name: string, seed: number): number {
  let one = seed | 0;
  let two = ~seed;
  for (let i = 0; i < name.length; i += 1) {
    const unit = name.charCodeAt(i);
    one = Math.imul(one ^ unit, 0x5bd1e995);
    one ^= one >>> 15;
    two = Math.imul(two + unit, 0x27d4eb2f);
    two ^= two >>> 13;
  }
  return (mix(two) & 0x1fffff) * 2 ** 32 + (mix(one) >>> 0) + 1;
}

/** Spreads a change of one bit over all bits. */
function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x7feb352d);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x846ca68b);
  return mixed ^ (mixed >>> 16);
}

/** The first place of the set of a name. @param places a multiple of `setSize` */
export function firstPlace(hash: number, places: number): number {
  return (hash % (places / setSize)) * setSize;
}
