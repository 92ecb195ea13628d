/** The chapters of a story that use keys. */
import { encapsulate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid } from "../support/refusals.ts";
import type { Stage } from "./kms-story.ts";
import { computeMu, isSignatureOf, toSigningInput, verifyWithJose } from "./outside.ts";

const data = Buffer.from("hello");
const otherData = Buffer.from("hallo");
const context = Buffer.from("invoices of 2026");

export function tellOfSigning({ kms, key, sendsStreams }: Stage): void {
  describe("a signature that node:crypto verifies with the PEM", () => {
    it.each(["invoices", "letter 1", "parcels"])("is made by Sign with the key of %s", async (name) => {
      const { keyId, algorithm, publicKeyPem } = key(name);
      const { result } = await kms.sign({ keyId, data });
      expect(result).toMatchObject({ keyId, algorithm });
      expect(isSignatureOf(publicKeyPem, result?.signature, data)).toBe(true);
      expect(isSignatureOf(publicKeyPem, result?.signature, otherData)).toBe(false);
    });

    it("is bound to its context", async () => {
      const { keyId, publicKeyPem } = key("invoices");
      const { result } = await kms.sign({ keyId, data, context });
      expect(isSignatureOf(publicKeyPem, result?.signature, data, context)).toBe(true);
      expect(isSignatureOf(publicKeyPem, result?.signature, data)).toBe(false);
    });

    it("is made of a mu that was computed outside, as of its message", async () => {
      const { keyId, publicKey = new Uint8Array(), publicKeyPem } = key("invoices");
      const { result } = await kms.sign({ keyId, mu: computeMu(publicKey, data, context) });
      expect(isSignatureOf(publicKeyPem, result?.signature, data, context)).toBe(true);
    });

    it("is made by BatchSign of each message", async () => {
      const { keyId, algorithm, publicKeyPem } = key("invoices");
      const answer = await kms.batchSign({ keyId, data: [data, otherData], context });
      const [first, second] = answer.results;
      expect(answer).toMatchObject({ keyId, algorithm, results: { length: 2 } });
      expect(isSignatureOf(publicKeyPem, first?.signature, data, context)).toBe(true);
      expect(isSignatureOf(publicKeyPem, second?.signature, otherData, context)).toBe(true);
    });

    it("is not made by BatchSign of any message if one is empty", async () => {
      const { keyId } = key("invoices");
      const call = kms.batchSign({ keyId, data: [data, new Uint8Array(), otherData], context });
      expect(await refusal(call)).toEqual(fieldInvalid);
    });

    if (!sendsStreams) return;

    it("is made by SignStream of a message in chunks", async () => {
      const { keyId, algorithm, publicKeyPem } = key("letter 1");
      const chunks = [data, Buffer.alloc(100_000, "x"), otherData];
      const { result } = await kms.signStream(toParts({ keyId, context }, chunks));
      expect(result).toMatchObject({ keyId, algorithm });
      expect(isSignatureOf(publicKeyPem, result?.signature, Buffer.concat(chunks), context)).toBe(true);
    });

    it("is made by no SignStream without a header, or of SLH-DSA", async () => {
      const { keyId } = key("parcels");
      expect(await refusal(kms.signStream(toParts(undefined, [data])))).toEqual({
        code: "InvalidArgument",
        reason: "FIELD_INVALID",
      });
      expect(await refusal(kms.signStream(toParts({ keyId }, [data])))).toEqual({
        code: "FailedPrecondition",
        reason: "KEY_USAGE_MISMATCH",
      });
    });
  });

  it("Sign makes the signature of a JSON Web Signature that jose verifies with the JWK of GetKey", async () => {
    const { keyId, publicJwk } = key("invoices");
    if (publicJwk === undefined) throw new Error("GetKey gave no JWK");
    const signingInput = toSigningInput("hello");
    const { result } = await kms.sign({ keyId, data: Buffer.from(signingInput) });
    const signature = result?.signature ?? new Uint8Array();
    expect(await verifyWithJose(signingInput, signature, publicJwk)).toBe("hello");
  });
}

async function* toParts(header: { keyId: string; context?: Uint8Array } | undefined, chunks: Uint8Array[]) {
  if (header) yield { part: { case: "header", value: header } } as const;
  for (const value of chunks) yield { part: { case: "chunk", value } } as const;
}

export function tellOfVerifying({ kms, key }: Stage): void {
  describe("Verify", () => {
    let signature: Uint8Array;
    it("answers valid to a signature with the context that it was made with", async () => {
      const { keyId, algorithm } = key("invoices");
      signature = (await kms.sign({ keyId, data, context })).result?.signature ?? signature;
      const { result } = await kms.verify({ keyId, data, context, signature });
      expect(result).toMatchObject({ valid: true, keyId, algorithm });
    });

    const changes = [
      ["other data", () => ({ data: otherData })],
      ["no context", () => ({ context: new Uint8Array() })],
      ["one bit of the signature changed", () => ({ signature: flipBit(signature) })],
    ] as const;
    it.each(changes)("answers not valid with %s", async (_title, change) => {
      const { keyId } = key("invoices");
      const { result } = await kms.verify({ keyId, data, context, signature, ...change() });
      expect(result).toMatchObject({ valid: false });
    });
  });
}

export function tellOfKems({ kms, keep, key }: Stage): void {
  describe("a KEM key", () => {
    let ciphertext: Uint8Array;
    let sharedSecret: Uint8Array;

    it("is of ML-KEM-768 if CreateKey is told nothing but its usage", async () => {
      const { result } = await kms.createKey({ alias: "secrets", usage: "KEM" });
      expect(result).toMatchObject({ algorithm: "ML-KEM-768", usage: "KEM", status: "ACTIVE" });
      keep("secrets", result);
    });

    it("recovers a secret that node:crypto made with its PEM", async () => {
      const { keyId, algorithm, publicKeyPem = "" } = key("secrets");
      const made = encapsulate(publicKeyPem);
      ciphertext = made.ciphertext;
      sharedSecret = new Uint8Array(made.sharedKey);
      const { result } = await kms.decapsulate({ keyId, ciphertext });
      expect(result).toMatchObject({ sharedSecret, keyId, algorithm });
    });

    it("recovers a secret that Encapsulate made", async () => {
      const { keyId, algorithm } = key("secrets");
      const { result: made } = await kms.encapsulate({ keyId });
      expect(made).toMatchObject({ keyId, algorithm, ciphertext: { length: 1088 } });
      const { result } = await kms.decapsulate({ keyId, ciphertext: made?.ciphertext ?? new Uint8Array() });
      expect(result?.sharedSecret).toHaveLength(32);
      expect(result?.sharedSecret).toEqual(made?.sharedSecret);
    });

    it("recovers another secret from a ciphertext that was changed", async () => {
      const { keyId } = key("secrets");
      const { result } = await kms.decapsulate({ keyId, ciphertext: flipBit(ciphertext) });
      expect(result?.sharedSecret).toHaveLength(32);
      expect(result?.sharedSecret).not.toEqual(sharedSecret);
    });

    it("that was rotated still recovers secrets, and makes none", async () => {
      const { keyId } = key("secrets");
      keep("new secrets", (await kms.rotateKey({ keyId })).newKey);
      expect((await kms.decapsulate({ keyId, ciphertext })).result).toMatchObject({ sharedSecret });
      expect(await refusal(kms.encapsulate({ keyId }))).toEqual({
        code: "FailedPrecondition",
        reason: "KEY_STATE_INVALID",
      });
    });
  });
}
