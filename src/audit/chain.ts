/**
 * The chain of audit entries: what is hashed, and how.
 *
 * An entry's hash covers its content and the previous entry's hash, so no entry can be changed, removed or
 * moved without changing all later hashes. A tag binds each hash to a key that is stored only sealed, so
 * write access to the database is not enough to forge a chain.
 */
import { createHmac, hash } from "node:crypto";
import { checkpointText, emptyChainHash, entryText } from "./entry-text.ts";
import { keyLog, type LogTables } from "./tables.ts";

/** An event about a key or an identity. */
export interface AuditEvent {
  /** The key, as the caller named it; in the identity log, the subject of the event. */
  readonly keyId: string;
  /** Such as CREATE or SIGN. */
  readonly operation: string;
  /** The caller: the subject of a token, or "system". */
  readonly user: string;
  readonly outcome: "OK" | "REFUSED";
  /** Public values only. */
  readonly details: string;
}

/** Facts that not every entry has; empty if omitted. */
export interface AuditContext {
  /** Client address of the call; empty for the server's own work. */
  readonly clientAddress: string;
  /** ID of the call; empty for the server's own work. */
  readonly requestId: string;
  /** Owner of the key, who may read the entry; empty if the key does not exist. */
  readonly owner: string;
  /** Name of the key, to find its entries; empty if it has none. */
  readonly keyName: string;
}

/** An event to record. */
export type NewAuditEntry = AuditEvent & Partial<AuditContext>;

/** An entry at its position in the chain. */
export interface AuditEntry extends AuditEvent, AuditContext {
  /** Starts at 1, without gaps. */
  readonly sequence: number;
  readonly timestamp: Date;
  /** SHA-256, 64 lower-case hexadecimal digits. */
  readonly entryHash: string;
}

/** The end of a chain. */
export interface AuditHead {
  /** 0 for the empty chain. */
  readonly sequence: number;
  readonly entryHash: string;
}

export const emptyContext: AuditContext = { clientAddress: "", requestId: "", owner: "", keyName: "" };

/** The end of an empty chain, which precedes the first entry. */
export const emptyChain: AuditHead = { sequence: 0, entryHash: emptyChainHash };

/** Hashes an entry: SHA-256 of its text in UTF-8. Only the tag covers the key's owner and name. */
export function hashEntry(
  entry: NewAuditEntry & Pick<AuditEntry, "sequence" | "timestamp">,
  previousHash: string,
  { subject }: Pick<LogTables, "subject"> = keyLog,
): string {
  if (subject === "keyId") return hash("sha256", entryText(entry, previousHash), "hex");
  const { keyId, ...facts } = entry;
  return hash("sha256", entryText({ ...facts, subject: keyId }, previousHash), "hex");
}

/** Computes the tag of an entry's hash and of its key's owner and name. */
export function tagEntry(
  tagKey: Uint8Array,
  { entryHash, owner = "", keyName = "" }: Pick<AuditEntry, "entryHash"> & Partial<AuditContext>,
): string {
  const found = owner === "" && keyName === "" ? "" : ` ${JSON.stringify([owner, keyName])}`;
  return createHmac("sha256", tagKey).update(`audit entry ${entryHash}${found}`).digest("hex");
}

/** Computes the tag of the end of a chain, which reveals whether the last entries were cut off. */
export function tagHead(tagKey: Uint8Array, { sequence, entryHash }: AuditHead): string {
  return createHmac("sha256", tagKey).update(`audit head ${sequence} ${entryHash}`).digest("hex");
}

/** The content of a checkpoint: an end of the chain and its time. */
export interface AuditCheckpoint extends AuditHead {
  readonly signedAt: Date;
}

/** Returns the message that a checkpoint signs: its text in UTF-8. ML-DSA-65, empty context. */
export function checkpointMessage(checkpoint: AuditCheckpoint, purpose?: string): Uint8Array {
  return new TextEncoder().encode(checkpointText(checkpoint, purpose));
}
