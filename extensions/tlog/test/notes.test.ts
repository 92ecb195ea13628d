/** C2SP notes, checkpoints and keys, with the specifications' examples. */
import { describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { formatCheckpoint, parseCheckpoint } from "../checkpoint.ts";
import { formatNote, maxNoteBytes, NoteError, parseNote } from "../note.ts";
import {
  createEd25519Signer,
  createMlDsa44Signer,
  createMlDsa65Signer,
  importEd25519Seed,
} from "../sign-notes.ts";
import { computeKeyId, formatVerifierKey, parseVerifierKey } from "../verifier-keys.ts";
import { verifyNote } from "../verify-note.ts";

const provider = await createCryptoProvider("openssl");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The example in c2sp.org/signed-note. */
const exampleKey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const example = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`;
const origin = "log.example/audit";
const checkpoint = { origin, size: 7, root: new Uint8Array(32).fill(5) };
const text = formatCheckpoint(checkpoint);

describe("a note", () => {
  it("from the specification is parsed, verified, and formatted identically", async () => {
    const note = parseNote(bytes(example));
    expect(note.text).toBe("This is an example message.\n");
    expect(await verifyNote(provider, note, parseVerifierKey(exampleKey))).toMatchObject({
      keyName: "example.com/foo",
      timestamp: undefined,
    });
    expect(formatNote(note)).toBe(example);
  });

  it("does not verify with a different text", async () => {
    const note = parseNote(bytes(example.replace("example message", "exemplary message")));
    expect(await verifyNote(provider, note, parseVerifierKey(exampleKey))).toBe("invalid");
  });

  it("has its signatures after its last empty line", () => {
    const note = parseNote(bytes(`a\n\nb\n\n${example.split("\n\n")[1]}`));
    expect(note.text).toBe("a\n\nb\n");
  });

  const line = example.split("\n\n")[1] ?? "";
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
  ])("that %s is rejected", (_, note) => {
    expect(() => parseNote(bytes(note))).toThrow(NoteError);
  });

  it("that is not UTF-8 is rejected", () => {
    expect(() => parseNote(Buffer.concat([Buffer.of(0xff), bytes(example)]))).toThrow("is not UTF-8");
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
  const seconds = 1_893_456_000;
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
  const note = parseNote(bytes(formatNote({ text, signatures })));

  it.each(signers)("$key.type verifies in a note with all of them", async ({ key }) => {
    const parsed = parseVerifierKey(formatVerifierKey(key));
    const timestamp = key.type === "ML-DSA-44 cosignature" ? seconds : undefined;
    expect(await verifyNote(provider, note, parsed)).toMatchObject({ keyName: origin, timestamp });
  });

  it.each(signers)("$key.type does not verify for a different size", async ({ key }) => {
    const other = { ...note, text: text.replace("\n7\n", "\n8\n") };
    expect(await verifyNote(provider, other, key)).toBe("invalid");
  });

  it.each(signers)(
    "$key.type does not verify with a changed byte, or if it is duplicated",
    async ({ key }) => {
      const keyId = computeKeyId(key);
      const own = note.signatures.filter((one) => one.keyId === keyId);
      const changed = own.map((one) => ({
        ...one,
        signature: one.signature.map((byte, i) => (i === 9 ? byte ^ 1 : byte)),
      }));
      expect(await verifyNote(provider, { text, signatures: changed }, key)).toBe("invalid");
      expect(await verifyNote(provider, { text, signatures: [...own, ...own] }, key)).toBe("invalid");
      const shorter = own.map((one) => ({ ...one, signature: one.signature.subarray(1) }));
      expect(await verifyNote(provider, { text, signatures: shorter }, key)).toBe("invalid");
    },
  );

  it("is undefined for a key that did not sign, even one with the same name", async () => {
    const other = createEd25519Signer(origin, importEd25519Seed(new Uint8Array(32).fill(8)));
    expect(await verifyNote(provider, note, other.key)).toBeUndefined();
  });

  it("of ML-DSA-44 covers its time", async () => {
    const moved = note.signatures.map((one) => ({
      ...one,
      signature:
        one.signature.length === 2428
          ? one.signature.map((byte, i) => (i === 7 ? byte ^ 1 : byte))
          : one.signature,
    }));
    expect(
      await verifyNote(provider, { text, signatures: moved }, (signers[1] as (typeof signers)[1]).key),
    ).toBe("invalid");
  });
});
