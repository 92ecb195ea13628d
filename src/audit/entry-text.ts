/** The texts that the audit log hashes and signs. Browsers use this file too, so it needs no module of Node. */

/** The content of an entry that its hash covers. */
export interface HashedEntry {
  /** In the log of keys: the key of the event, as the caller named it. */
  readonly keyId?: string;
  /** In the log of identities: the user, the client or the key of the issuer. */
  readonly subject?: string;
  /** Such as CREATE, SIGN or LOG_IN. */
  readonly operation: string;
  /** The caller: the subject of a token, or "system". */
  readonly user: string;
  /** OK or REFUSED. */
  readonly outcome: string;
  readonly details: string;
  /** Counts from 1 without gaps. */
  readonly sequence: number;
  readonly timestamp: Date;
  /** Empty for the server's own work. */
  readonly clientAddress?: string;
  /** Empty for the server's own work. */
  readonly requestId?: string;
}

/** Stands in place of the hash before the first entry of a log. */
export const emptyChainHash = "0".repeat(64);

/**
 * Returns the text whose SHA-256 is the hash of an entry: RFC 8785 canonical JSON, with these members and no others.
 * The timestamp has milliseconds and ends in Z; the sequence is a number, all else are strings. An empty clientAddress or
 * requestId is left out, and so is keyId or subject, of which an entry has one.
 *
 * @param previousHash 64 lower-case hexadecimal digits; `emptyChainHash` for the first entry
 * @throws RangeError for a time that is not a date
 */
export function entryText(entry: HashedEntry, previousHash: string): string {
  const { clientAddress, details, keyId, operation, outcome, requestId, sequence, subject, timestamp, user } =
    entry;
  // RFC 8785, section 3.2.3: members in the order of their names. For strings and whole numbers, JSON.stringify
  // writes the form that section 3.2.2 requires.
  return JSON.stringify({
    clientAddress: clientAddress || undefined,
    details,
    keyId,
    operation,
    outcome,
    previousHash,
    requestId: requestId || undefined,
    sequence,
    subject,
    timestamp: timestamp.toISOString(),
    user,
  });
}

/** The content that a checkpoint signs: an end of the chain, and its time. */
export interface HashedCheckpoint {
  readonly sequence: number;
  /** 64 lower-case hexadecimal digits. */
  readonly entryHash: string;
  readonly signedAt: Date;
}

/**
 * Returns the text that a checkpoint signs with ML-DSA-65 and an empty context: RFC 8785 canonical JSON.
 *
 * @throws RangeError for a time that is not a date
 */
export function checkpointText(
  { entryHash, sequence, signedAt }: HashedCheckpoint,
  purpose = "audit checkpoint",
): string {
  return JSON.stringify({ entryHash, purpose, sequence, signedAt: signedAt.toISOString() });
}
