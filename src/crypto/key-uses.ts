/** What server-held keys are for. */

/** A key keeps its usage for life. */
export type KeyUsage = "SIGN" | "KEM" | "ENCRYPT";

/**
 * The operations that a usage allows, apart from reading the key. Only an active key performs the first one; a
 * rotated key still performs the second one.
 */
export const operationsOf = {
  SIGN: ["SIGN", "VERIFY"],
  KEM: ["ENCAPSULATE", "DECAPSULATE"],
  ENCRYPT: ["ENCRYPT", "DECRYPT"],
} as const satisfies Record<KeyUsage, readonly string[]>;

/** Lists the operations that a grant for a key of this usage can allow. */
export function listGrantable(usage: KeyUsage): readonly string[] {
  return [...operationsOf[usage], "GET_KEY"];
}
