/** C2SP notes, checkpoints, keys and tile paths, with the specifications' examples. */
import { describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { countHashes } from "../../../src/merkle/tiles.ts";
import { bytesOf, flipBit } from "../../../test/support/bytes.ts";
import { formatCheckpoint, parseCheckpoint } from "../checkpoint.ts";
import { formatNote, maxNoteBytes, NoteError, parseNote } from "../note.ts";
import {
  createEd25519Signer,
  createMlDsa44Signer,
  createMlDsa65Signer,
  importEd25519Seed,
} from "../sign-notes.ts";
import { formatTilePath, measureTile, parseTilePath } from "../tile-paths.ts";
import { computeKeyId, formatVerifierKey, parseVerifierKey } from "../verifier-keys.ts";
import { verifyNote } from "../verify-note.ts";

const provider = await createCryptoProvider("openssl");

/** The example in c2sp.org/signed-note. */
const exampleKey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const line =
  "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
const example = `This is an example message.\n\n${line}`;
const origin = "log.example/audit";
const checkpoint = { origin, size: 7, root: new Uint8Array(32).fill(5) };
const text = formatCheckpoint(checkpoint);

describe("a note", () => {
  it("from the specification is parsed, verified, and formatted identically", async () => {
    const note = parseNote(bytesOf(example));
    expect(note.text).toBe("This is an example message.\n");
    const key = parseVerifierKey(exampleKey);
    const found = { keyName: "example.com/foo", timestamp: undefined };
    expect(await verifyNote(provider, note, key)).toMatchObject(found);
    expect(await verifyNote(provider, { ...note, text: "This is another.\n" }, key)).toBe("invalid");
    expect(formatNote(note)).toBe(example);
  });

  it("has its signatures after its last empty line", () => {
    expect(parseNote(bytesOf(`a\n\nb\n\n${line}`)).text).toBe("a\n\nb\n");
  });

  it.each([
    ["is empty", ""],
    ["has no signature", "text\n\n"],
    ["has no empty line", `text\n${line}`],
    ["does not end with a newline", `text\n\n${line.trimEnd()}`],
    ["has a hyphen instead of the dash", `text\n\n${line.replace("—", "-")}`],
    ["has a plus in a name", `text\n\n${line.replace("example.com", "a+b")}`],
    ["has a Unicode space in a name", `text\n\n${line.replace("example.com", "a\u2003b")}`],
    ["has non-canonical base64", `text\n\n${line.replace("QM=", "QN=")}`],
    ["has truncated base64", `text\n\n${line.replace("QM=", "QM")}`],
    ["has a key ID and no signature", "text\n\n— a AAAAAA==\n"],
    ["has a control character", `te\u0007xt\n\n${line}`],
    ["has a carriage return", `text\r\n\n${line}`],
    ["has 33 signatures", `text\n\n${line.repeat(33)}`],
    ["is too large", `${"x".repeat(maxNoteBytes)}\n\n${line}`],
    ["has a byte order mark in its first signature line", `text\n\n\ufeff${line}`],
    ["is not UTF-8", Buffer.concat([Buffer.of(0xff), bytesOf(example)])],
  ])("that %s is rejected", (_, note) => {
    expect(() => parseNote(Buffer.from(note as string))).toThrow(NoteError);
  });
});

describe("a verifier key", () => {
  it("from the specification is parsed, and formatted identically", () => {
    const key = parseVerifierKey(exampleKey);
    expect(key).toMatchObject({ name: "example.com/foo", type: "Ed25519" });
    expect(computeKeyId(key)).toBe(0x530d903a);
    expect(formatVerifierKey(key)).toBe(exampleKey);
  });

  it.each([
    ["a different name", exampleKey.replace("foo", "bar")],
    ["a different ID", exampleKey.replace("530d903a", "530d903b")],
    ["an ID in capitals", exampleKey.replace("530d903a", "530D903A")],
    ["a different type", exampleKey.replace("+Ae", "+Ze")],
    ["a shorter key", exampleKey.slice(0, -4)],
    ["non-canonical base64", exampleKey.replace("3U2k", "3U2k=")],
    ["nothing", ""],
    ["a trailing space", `${exampleKey} `],
    ["too many bytes", exampleKey + "A".repeat(5000)],
  ])("with %s is rejected", (_, text) => {
    expect(() => parseVerifierKey(text)).toThrow(NoteError);
  });
});

describe("a checkpoint", () => {
  it("is formatted and parsed", () => {
    expect(text).toBe(`log.example/audit\n7\n${"BQUF".repeat(10)}BQU=\n`);
    expect(parseCheckpoint(text)).toEqual({ ...checkpoint, extensions: [] });
    expect(parseCheckpoint(`${text}more\n`).extensions).toEqual(["more"]);
  });

  it.each([
    ["a leading zero", text.replace("\n7\n", "\n07\n")],
    ["a negative size", text.replace("\n7\n", "\n-7\n")],
    ["a size beyond 2^53", text.replace("\n7\n", "\n9007199254740992\n")],
    ["an exponent", text.replace("\n7\n", "\n1e3\n")],
    ["no origin", text.replace(origin, "")],
    ["a space in the origin", text.replace(origin, "log example")],
    ["a root of 31 bytes", `a\n7\n${Buffer.alloc(31).toString("base64")}\n`],
    ["a non-canonical root", text.replace("BQU=", "BQV=")],
    ["an empty extension", `${text}\nmore\n`],
    ["two lines", `${origin}\n7\n`],
    ["no trailing newline", text.trimEnd()],
  ])("with %s is rejected", (_, wrong) => {
    expect(() => parseCheckpoint(wrong)).toThrow(NoteError);
  });
});

describe("a signature of each type", async () => {
  const now = new Date("2030-01-01T00:00:00.900Z");
  const mlDsa44 = (await provider.generateKeyPair("ML-DSA-44")).secretKey;
  const mlDsa65 = (await provider.generateKeyPair("ML-DSA-65")).secretKey;
  const signers = [
    createEd25519Signer(origin, importEd25519Seed(new Uint8Array(32).fill(9))),
    createMlDsa44Signer(origin, provider, mlDsa44),
    createMlDsa65Signer(origin, mlDsa65.publicKey.exportRaw(), (message, context) =>
      provider.sign(mlDsa65, message, { context }),
    ),
  ];
  const signatures = await Promise.all(signers.map((signer) => signer.sign(text, now)));
  const note = parseNote(bytesOf(formatNote({ text, signatures })));

  it.each(signers)("$key.type verifies in a note with all of them", async ({ key }) => {
    const parsed = parseVerifierKey(formatVerifierKey(key));
    const timestamp = key.type === "ML-DSA-44 cosignature" ? 1_893_456_000 : undefined;
    expect(await verifyNote(provider, note, parsed)).toMatchObject({ keyName: origin, timestamp });
  });

  // Byte 7 of an ML-DSA-44 cosignature is in its time.
  it.each(signers)("$key.type does not verify if it or the size is changed", async ({ key }) => {
    const [own] = note.signatures.filter((one) => one.keyId === computeKeyId(key));
    const verify = (...all: (typeof own)[]) => verifyNote(provider, { text, signatures: all as never }, key);
    const withBytes = (change: (bytes: Uint8Array) => Uint8Array) =>
      own && { ...own, signature: change(own.signature) };
    expect(await verify(own)).toMatchObject({ keyName: origin });
    expect(await verify(withBytes((bytes) => flipBit(bytes, 7)))).toBe("invalid");
    expect(await verify(withBytes((bytes) => flipBit(bytes, 9)))).toBe("invalid");
    expect(await verify(withBytes((bytes) => bytes.subarray(1)))).toBe("invalid");
    expect(await verify(own, own)).toBe("invalid");
    const other = { ...note, text: text.replace("\n7\n", "\n8\n") };
    expect(await verifyNote(provider, other, key)).toBe("invalid");
  });

  it("is undefined for a key that did not sign, even one with the same name", async () => {
    const other = createEd25519Signer(origin, importEd25519Seed(new Uint8Array(32).fill(8)));
    expect(await verifyNote(provider, note, other.key)).toBeUndefined();
  });
});

describe("a tile path", () => {
  it.each([
    ["0/000", { kind: "hashes", level: 0, index: 0, width: 256 }],
    ["1/000.p/17", { kind: "hashes", level: 1, index: 0, width: 17 }],
    ["0/x001/x234/067", { kind: "hashes", level: 0, index: 1_234_067, width: 256 }],
    ["63/x001/000.p/255", { kind: "hashes", level: 63, index: 1000, width: 255 }],
    ["entries/x001/234.p/1", { kind: "entries", level: 0, index: 1234, width: 1 }],
  ] as const)("%s is parsed and formatted", (path, tile) => {
    expect(parseTilePath(path)).toEqual(tile);
    expect(formatTilePath(tile)).toBe(path);
  });

  it.each([
    ..." 0 0/ 0/0 00/000 64/000 -1/000 +1/000 0/1000 0/x000/001 0/001/000 0/x001 0/X001/000".split(" "),
    ..."0/000.p/0 0/000.p/00 0/000.p/01 0/000.p/256 0/000.p/999 0/000.p/ 0/000.p 0/000/".split(" "),
    ..."/0/000 0//000 0/../0/000 0/٠٠٠ entries entries/0/000 Entries/000".split(" "),
    ...["0/000\n", "0/000.p/1\n", "0/x999/x999/x999/x999/x999/999", "0/x001/x001/x001/x001/x001/x001/000"],
  ])("%j is rejected, because each tile has exactly one path", (path) => {
    expect(parseTilePath(path)).toBeUndefined();
  });
});

describe("a tree of 70,000 leaves", () => {
  it("has the tiles listed in the specification", () => {
    expect([0, 1, 2, 3].map((level) => countHashes(level, 70_000))).toEqual([70_000, 273, 1, 0]);
    const measure = (level: number, ...indices: number[]) =>
      indices.map((index) => measureTile({ level, index }, 70_000));
    expect(measure(0, 272, 273, 274)).toEqual([256, 112, 0]);
    expect([measure(1, 0, 1), measure(2, 0), measure(63, 0)]).toEqual([[256, 17], [1], [0]]);
  });
});
