/** Signature algorithms as Web Cryptography takes them. */

type Importing = Parameters<SubtleCrypto["importKey"]>[2] & {
  readonly name: string;
  readonly namedCurve?: string;
};

/** What to import a key with, and what to verify with. */
export type Algorithms = readonly [importing: Importing, verifying: Parameters<SubtleCrypto["verify"]>[0]];

export function ecdsa(namedCurve: string, bits: number): Algorithms {
  return [
    { name: "ECDSA", namedCurve },
    { name: "ECDSA", hash: `SHA-${bits}` },
  ];
}

/** @param name "RSA-PSS", whose salt is as long as the hash, or "RSASSA-PKCS1-v1_5" */
export function rsa(name: string, bits: number): Algorithms {
  return [
    { name, hash: `SHA-${bits}` },
    { name, saltLength: bits / 8 },
  ];
}

/** An algorithm without parameters, such as "Ed25519" or "ML-DSA-65". */
export function named(name: string): Algorithms {
  return [{ name }, { name }];
}
