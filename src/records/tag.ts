/** Tags that detect changes made to a record outside the server. */
import { createHmac, timingSafeEqual } from "node:crypto";

/** A value that a tag binds. */
export type TagField = string | number | Uint8Array;

/**
 * Binds a record's fields to each other: HMAC-SHA-256 in hexadecimal.
 *
 * @param key RootKeys.records
 * @param fields in an order that the caller chooses; the first should name the kind of record
 */
export function tagRecord(key: Uint8Array, fields: readonly TagField[]): string {
  const parts = fields.flatMap((field) => {
    const bytes = field instanceof Uint8Array ? field : Buffer.from(String(field));
    // The length before each field distinguishes ("ab", "c") from ("a", "bc").
    return [Buffer.from(`${bytes.length}:`), bytes];
  });
  // One update is much cheaper than one per field.
  return createHmac("sha256", key).update(Buffer.concat(parts)).digest("hex");
}

/** Compares two tags without revealing where they differ. */
export function equalTags(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
