import { createHash } from "node:crypto";
import { clone, create } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import canonicalize from "canonicalize";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuditCheckpointSchema, type AuditEntry, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { type EncryptionAlgorithm, type EncryptionInput, encryptForKey } from "../../src/client/encrypt.ts";
import { auditStart, verifyAuditCheckpoint, verifyAuditEntries } from "../../src/client/verify-audit.ts";
import { type SignatureInput, verifySignature } from "../../src/client/verify-signature.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { decryptData } from "../../src/crypto/key-encryption.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { bytesOf } from "../support/bytes.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();
const message = new TextEncoder().encode("hello");
const context = new TextEncoder().encode("test");

describe("verifySignature", () => {
  const signature = ml_dsa65.sign(message, secretKey, { context });
  const valid: SignatureInput = { algorithm: "ML-DSA-65", publicKey, message, signature, context };

  it("accepts a signature only with its message, context and key", async () => {
    const flipped = Uint8Array.from(signature, (byte, at) => (at === 100 ? byte ^ 1 : byte));
    expect(await verifySignature(valid)).toBe(true);
    for (const change of [
      ...[flipped, new Uint8Array(), signature.subarray(0, 3308)].map((other) => ({ signature: other })),
      ...[{ message: context }, { context: new Uint8Array() }, { publicKey: ml_dsa65.keygen().publicKey }],
    ])
      expect(await verifySignature({ ...valid, ...change })).toBe(false);
  });

  it.each(["publicKey", "message", "signature", "context"])(
    "rejects a %s that is not bytes",
    async (name) => {
      for (const wrong of ["hello", null, [1, 2], new ArrayBuffer(8), undefined]) {
        if (name === "context" && wrong === undefined) continue;
        await expect(verifySignature({ ...valid, [name]: wrong })).rejects.toThrow(
          new RegExp(`^${name} must be a Uint8Array, not `),
        );
      }
      await expect(verifySignature({ ...valid, [name]: "hello" })).rejects.toThrow("not a text; encode it");
    },
  );

  it("rejects a key or context of the wrong length, and names it", async () => {
    for (const [change, message] of [
      [{ publicKey: publicKey.subarray(1) }, "publicKey has 1951"],
      [{ context: new Uint8Array(256) }, "context has 256 bytes"],
      [{ algorithm: "__proto__" as "ML-DSA-65" }, "algorithm must be"],
    ] as const)
      await expect(verifySignature({ ...valid, ...change })).rejects.toThrow(message);
  });
});

/** Entries as a server writes them, hashed by independent code. */
function makeChain(count: number, numberOf = (at: number) => at + 1): AuditEntry[] {
  let previousHash = "0".repeat(64);
  return Array.from({ length: count }, (_none, at) => {
    const what = { keyId: "key-1", operation: "SIGN", user: 'ada "\u2028 é', details: "", outcome: "OK" };
    const fields = { ...what, sequence: numberOf(at) };
    const timestamp = new Date(1_790_000_000_000 + at);
    const text = canonicalize({ ...fields, timestamp: timestamp.toISOString(), previousHash }) ?? "";
    previousHash = createHash("sha256").update(text).digest("hex");
    return create(AuditEntrySchema, {
      ...fields,
      timestamp: timestampFromDate(timestamp),
      entryHash: previousHash,
    });
  });
}

describe("verifyAuditEntries", () => {
  const chain = makeChain(4);
  const second = chain[1] ?? create(AuditEntrySchema);
  const { seconds = 0n, nanos = 0 } = second.timestamp ?? {};
  const changed = (change: Readonly<Record<string, unknown>>): AuditEntry[] =>
    chain.with(1, Object.assign(clone(AuditEntrySchema, second), change));

  it("accepts the log from its start, and from the head of an earlier verdict", async () => {
    const first = await verifyAuditEntries(chain.slice(0, 2), auditStart);
    expect(first).toEqual({ valid: true, head: { sequence: 2, entryHash: second.entryHash } });
    const head = "head" in first ? first.head : auditStart;
    expect(await verifyAuditEntries(chain.slice(2), head)).toMatchObject({
      valid: true,
      head: { sequence: 4 },
    });
    expect(await verifyAuditEntries([], auditStart)).toEqual({ valid: true, head: auditStart });
  });

  const at = (seconds: bigint, nanos: number) => create(TimestampSchema, { seconds, nanos });
  const hostile: Record<string, readonly AuditEntry[]> = {
    "a changed user": changed({ user: "eve" }),
    "a different hash": changed({ entryHash: "f".repeat(64) }),
    "an added request ID": changed({ requestId: "r" }),
    "no timestamp": changed({ timestamp: undefined }),
    "a timestamp outside the calendar": changed({ timestamp: at(1n << 62n, 0) }),
    "a timestamp finer than the hash covers": changed({ timestamp: at(seconds, nanos - 1) }),
    "a sequence that is not a number": changed({ sequence: Number.NaN }),
    "a missing entry": chain.toSpliced(1, 1),
    "reordered entries": [chain[0], chain[2], chain[1]].flatMap((entry) => entry ?? []),
    "a skipped sequence number despite chained hashes": makeChain(2, (at) => 2 * at + 1),
    "a repeated entry": [chain[0], chain[0]].flatMap((entry) => entry ?? []),
  };
  it.each(Object.entries(hostile))("detects %s", async (_name, entries) => {
    expect(await verifyAuditEntries(entries, auditStart)).toEqual({ valid: false, firstBrokenSequence: 2 });
  });
});

describe("verifyAuditCheckpoint", () => {
  const signedAt = new Date("2030-01-31T12:00:00.000Z");
  const entryHash = "ab".repeat(32);
  const statement =
    canonicalize({ entryHash, purpose: "audit checkpoint", sequence: 7, signedAt: signedAt.toISOString() }) ??
    "";
  const signed = (text: string) => ml_dsa65.sign(new TextEncoder().encode(text), secretKey);
  const fields = {
    sequence: 7,
    entryHash,
    signedAt: timestampFromDate(signedAt),
    statement,
    signature: signed(statement),
  };
  const verify = (change: Partial<typeof fields>, key = publicKey) =>
    verifyAuditCheckpoint(create(AuditCheckpointSchema, { ...fields, ...change }), key);

  it("accepts what this store signed, with its own fields, and as a checkpoint", async () => {
    expect(await verify({})).toBe(true);
    expect(await verify({}, ml_dsa65.keygen().publicKey)).toBe(false);
    expect(await verify({ sequence: 8 })).toBe(false);
    expect(await verify({ entryHash: "cd".repeat(32) })).toBe(false);
    const other = statement.replace("audit checkpoint", "something else");
    expect(await verify({ statement: other, signature: signed(other) })).toBe(false);
  });
});

const keyId = "key-0f8fad5b-d9cb-469f-a165-70867728950e";
const plaintext = bytesOf("a database password");
const associatedData = bytesOf("row 17");
const algorithms: EncryptionAlgorithm[] = ["X-Wing", "ML-KEM-768", "ML-KEM-1024"];

describe("encryptForKey", () => {
  let provider: CryptoProvider;
  beforeAll(async () => {
    provider = await createCryptoProvider("openssl");
  });
  afterAll(() => provider.close());

  it.each(algorithms)("encrypts what the server decrypts, under a key of %s", async (algorithm) => {
    const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
    const input = { keyId, algorithm, publicKey: publicKey.exportRaw(), plaintext, associatedData };
    const data = await encryptForKey(input);
    expect(await decryptData(provider, secretKey, { data, associatedData })).toEqual(plaintext);
    const bare = await encryptForKey({ ...input, plaintext: new Uint8Array(), associatedData: undefined });
    expect(bare).toHaveLength({ "X-Wing": 1153, "ML-KEM-768": 1121, "ML-KEM-1024": 1601 }[algorithm]);
  });

  const valid = { keyId, algorithm: "X-Wing", publicKey: new Uint8Array(1216), plaintext };
  it.each([
    ["an unknown algorithm", { algorithm: "ML-KEM-512" }, /algorithm must be X-Wing, /],
    ["a name instead of a key ID", { keyId: "name/vault" }, /keyId must be "key-" and a UUID/],
    ["a short public key", { publicKey: new Uint8Array(1184) }, /1184 bytes; X-Wing has 1216/],
    [
      "bytes that are not a public key",
      { publicKey: new Uint8Array(1216).fill(255) },
      /publicKey is not a key/,
    ],
    ["a string as plaintext", { plaintext: "secret" }, /plaintext must be a Uint8Array/],
    ["more than the server decrypts", { plaintext: new Uint8Array(65_537) }, /the limit is 65536/],
  ])("throws a TypeError for %s", async (_what, change, message) => {
    const call = encryptForKey({ ...valid, ...change } as EncryptionInput);
    await expect(call).rejects.toThrow(TypeError);
    await expect(call).rejects.toThrow(message);
  });
});
