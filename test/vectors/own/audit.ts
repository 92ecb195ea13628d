/** Vectors of the audit log: entries in their chain, and checkpoints. */
import canonicalize from "canonicalize";
import {
  type AuditCheckpoint,
  type AuditHead,
  checkpointMessage,
  emptyChain,
  hashEntry,
  type NewAuditEntry,
} from "../../../src/audit/chain.ts";
import { mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const signed: NewAuditEntry = {
  keyId: "key-00000000-0000-4000-8000-000000000001",
  operation: "SIGN",
  user: "ada",
  outcome: "OK",
  details: "bytes=5",
};

const entries: readonly (readonly [name: string, entry: NewAuditEntry, time: string])[] = [
  [
    "the first entry, at a whole second",
    { ...signed, operation: "CREATE", user: "system", details: "algorithm=ML-DSA-65, usage=SIGN" },
    "2026-01-02T03:04:05.000Z",
  ],
  ["empty details", { ...signed, details: "" }, "2026-01-02T03:04:05.006Z"],
  [
    "all texts empty",
    { ...signed, keyId: "", operation: "", user: "", details: "" },
    "2026-01-02T03:04:05.100Z",
  ],
  [
    "a refused attempt",
    { ...signed, outcome: "REFUSED", details: "reason=KEY_NOT_ACTIVE" },
    "2026-01-02T03:04:06.789Z",
  ],
  [
    "non-ASCII and control characters",
    { ...signed, keyId: "no such key: ключ", user: awkwardText, details: awkwardText },
    "2026-12-31T23:59:59.999Z",
  ],
];

/** A chain of entries, and one entry far ahead. */
export function auditEntryVectors(): VectorSet {
  const cases: VectorCase[] = [];
  let head: AuditHead = emptyChain;
  const add = (name: string, entry: NewAuditEntry, time: string): void => {
    const timestamp = new Date(time);
    const sequence = head.sequence + 1;
    const { entryHash: previousHash } = head;
    const canonicalJson = canonicalize({ ...entry, previousHash, sequence, timestamp: time }) ?? "";
    const entryHash = hashEntry({ ...entry, sequence, timestamp }, previousHash);
    head = { sequence, entryHash };
    cases.push(
      vectorCase(name, {
        input: { ...entry, sequence, timestamp: time, previousHash },
        intermediate: { canonicalJson, hashedBytes: utf8(canonicalJson).toHex() },
        result: { entryHash },
      }),
    );
  };
  for (const [name, entry, time] of entries) add(name, entry, time);
  // Does not chain to the entries above. Numbers of this size still have no fraction or exponent.
  head = { sequence: Number.MAX_SAFE_INTEGER - 1, entryHash: head.entryHash };
  add("the largest sequence number", signed, "1970-01-01T00:00:00.001Z");
  return {
    format: "qsp-vectors/1",
    name: "audit-entry",
    specification: "docs/formats.md#audit-entry-and-hash-chain",
    note: "Each entry but the last follows the one before it: previousHash is the entryHash of the case before.",
    keys: {},
    cases,
  };
}

/** Checkpoints, and invalid ones that must be rejected. */
export function checkpointVectors(): VectorSet {
  const key = mlDsaKey("ML-DSA-65", "audit signing key");
  const checkpoint = (sequence: number, entryHash: string, signedAt: string): AuditCheckpoint => {
    return { sequence, entryHash, signedAt: new Date(signedAt) };
  };
  const make = (
    name: string,
    { sequence, entryHash, signedAt }: AuditCheckpoint,
    change: { readonly valid?: boolean; readonly signed?: Uint8Array; readonly context?: Uint8Array } = {},
  ): VectorCase => {
    const message = checkpointMessage({ sequence, entryHash, signedAt });
    const signature = key.sign(change.signed ?? message, change.context);
    return vectorCase(name, {
      valid: change.valid ?? true,
      input: { key: "signer", sequence, entryHash, signedAt: signedAt.toISOString() },
      intermediate: { signedBytes: message.toHex() },
      result: { statement: new TextDecoder().decode(message), signature: signature.toHex() },
    });
  };
  const some = checkpoint(4, "5f".repeat(32), "2026-01-02T03:05:00.250Z");
  const { entryHash, sequence, signedAt } = some;
  const without = { entryHash, sequence, signedAt: signedAt.toISOString() };
  const otherPurpose = canonicalize({ ...without, purpose: "audit entry" }) ?? "";
  return {
    format: "qsp-vectors/1",
    name: "checkpoint",
    specification: "docs/formats.md#checkpoint",
    note: "purpose is always 'audit checkpoint'. The signatures are deterministic; servers sign hedged.",
    keys: { signer: key.entry },
    cases: [
      make("the empty log", checkpoint(0, emptyChain.entryHash, "2026-01-02T03:04:05.000Z")),
      make("four entries", some),
      make(
        "the largest sequence number",
        checkpoint(Number.MAX_SAFE_INTEGER, "0a".repeat(32), "9999-12-31T23:59:59.999Z"),
      ),
      make("a signature with a different purpose", some, { valid: false, signed: utf8(otherPurpose) }),
      make("a signature without a purpose", some, {
        valid: false,
        signed: utf8(canonicalize(without) ?? ""),
      }),
      make("a signature with a context", some, { valid: false, context: utf8("audit checkpoint") }),
    ],
  };
}
