/**
 * The texts that the audit log hashes and signs. Browsers also use this file, so it imports no Node module.
 */

/** The content of an entry that its hash covers. */
export interface HashedEntry {
  /** In the key log: the key, as the caller named it. */
  readonly keyId?: string;
  /** In the identity log: the user, client or issuer key. */
  readonly subject?: string;
  /** Such as CREATE, SIGN or LOG_IN. */
  readonly operation: string;
  /** The caller: the subject of a token, or "system". */
  readonly user: string;
  /** OK or REFUSED. */
  readonly outcome: string;
  readonly details: string;
  /** Starts at 1, without gaps. */
  readonly sequence: number;
  readonly timestamp: Date;
  /** Empty for the server's own work. */
  readonly clientAddress?: string;
  /** Empty for the server's own work. */
  readonly requestId?: string;
}

/** Used as the previous hash of a log's first entry. */
export const emptyChainHash = "0".repeat(64);

/**
 * Returns the text whose SHA-256 is an entry's hash: RFC 8785 canonical JSON with exactly these members. The
 * timestamp has milliseconds and ends in Z; the sequence is a number, everything else is a string. An empty
 * clientAddress or requestId is omitted. An entry has either a keyId or a subject.
 *
 * @param previousHash 64 lower-case hexadecimal digits; `emptyChainHash` for the first entry
 * @throws RangeError for an invalid date
 */
export function entryText(entry: HashedEntry, previousHash: string): string {
  const { clientAddress, details, keyId, operation, outcome, requestId, sequence, subject, timestamp, user } =
    entry;
  // RFC 8785, section 3.2.3: members in name order. For strings and integers, JSON.stringify produces the
  // form that section 3.2.2 requires.
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

/** The content that a checkpoint signs: an end of the chain and its time. */
export interface HashedCheckpoint {
  readonly sequence: number;
  /** 64 lower-case hexadecimal digits. */
  readonly entryHash: string;
  readonly signedAt: Date;
}

/**
 * Returns the text that a checkpoint signs with ML-DSA-65 and an empty context: RFC 8785 canonical JSON.
 *
 * @throws RangeError for an invalid date
 */
export function checkpointText(
  { entryHash, sequence, signedAt }: HashedCheckpoint,
  purpose = "audit checkpoint",
): string {
  return JSON.stringify({ entryHash, purpose, sequence, signedAt: signedAt.toISOString() });
}
