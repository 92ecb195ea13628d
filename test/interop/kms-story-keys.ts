/** The chapters of a story that make keys and change them. */
import { randomUUID } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { describe, expect, it } from "vitest";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { refusal } from "../support/refusal.ts";
import { stateRefuses } from "../support/refusals.ts";
import type { Stage } from "./kms-story.ts";
import { isSignatureOf, rawKeyOf } from "./outside.ts";

const data = Buffer.from("hello");

export function tellOfMaking({ kms, past, keep, key, watched }: Stage): void {
  describe("CreateKey and GetKey", () => {
    it("make an ML-DSA-65 key if told nothing but a name, and watchers are told at once", async () => {
      const first = watched.next();
      const { result } = await kms.createKey({ alias: "invoices – Zürich" });
      const { keyId } = keep("invoices", result);
      expect(result).toMatchObject({
        keyId: expect.stringMatching(/^key-[0-9a-f-]{36}$/),
        alias: "invoices – Zürich",
        algorithm: "ML-DSA-65",
        usage: "SIGN",
        status: "ACTIVE",
      });
      const sequence = past().entries + 1;
      expect((await first).value).toMatchObject({ keyId, operation: "CREATE", outcome: "OK", sequence });
    });

    it("make keys of other algorithms, whose name is their keyId if they are given none", async () => {
      for (const alias of ["letter 1", "letter 2", "letter 3"])
        keep(alias, (await kms.createKey({ alias, algorithm: "ML-DSA-44" })).result);
      const { result } = await kms.createKey({ algorithm: "SLH-DSA-SHA2-128f" });
      const { keyId } = keep("parcels", result);
      expect(result).toMatchObject({ alias: keyId, algorithm: "SLH-DSA-SHA2-128f", usage: "SIGN" });
    });

    it("give the public key raw, as PEM and as JWK", async () => {
      const { result } = await kms.getKey({ keyId: key("invoices").keyId });
      expect(result).toEqual({ ...key("invoices"), publicJwk: expect.anything() });
      const { publicKey, publicKeyPem, publicJwk } = keep("invoices", result);
      expect(publicKey).toEqual(rawKeyOf(publicKeyPem));
      const pub = Buffer.from(publicKey ?? []).toString("base64url");
      const kid = await calculateJwkThumbprint({ kty: "AKP", alg: "ML-DSA-65", pub });
      expect(publicJwk).toMatchObject({ kty: "AKP", alg: "ML-DSA-65", use: "sig", pub, kid });
    });
  });
}

export function tellOfLists({ kms, past, key }: Stage): void {
  describe("ListKeys", () => {
    const letters = { algorithm: "ML-DSA-44", status: "ACTIVE" };
    let nextPageToken: string;

    it("lists all keys in the order of their creation, without their public halves", async () => {
      const names = ["invoices", "letter 1", "letter 2", "letter 3", "parcels"];
      const before = past().keys.length;
      const list = await kms.listKeys({});
      const withoutPublic = { publicKey: undefined, publicKeyPem: undefined, publicJwk: undefined };
      expect(list.keys.slice(before)).toEqual(names.map((name) => ({ ...key(name), ...withoutPublic })));
      expect(list).toMatchObject({ totalSize: before + 5, nextPageToken: "" });
    });

    it("lists the keys of a filter in pages", async () => {
      const { status, algorithm } = letters;
      const before = past().keys.filter((old) => old.status === status && old.algorithm === algorithm).length;
      const pageSize = before + 2;
      const page = await kms.listKeys({ ...letters, pageSize });
      ({ nextPageToken } = page);
      const rest = await kms.listKeys({ ...letters, pageSize, pageToken: nextPageToken });
      expect(namesOf(page.keys.slice(before))).toEqual(["letter 1", "letter 2"]);
      expect(namesOf(rest.keys)).toEqual(["letter 3"]);
      expect([page.totalSize, rest.totalSize, rest.nextPageToken]).toEqual([before + 3, before + 3, ""]);
    });

    it("refuses the page token of another list", async () => {
      expect(await refusal(kms.listKeys({ pageToken: nextPageToken }))).toEqual({
        code: "InvalidArgument",
        reason: "FIELD_INVALID",
      });
    });

    it("lists nothing of an algorithm that no key has", async () => {
      expect(await kms.listKeys({ algorithm: "ML-KEM-512" })).toMatchObject({ keys: [], totalSize: 0 });
    });
  });
}

function namesOf(keys: readonly KeyRecord[]): string[] {
  return keys.map(({ alias }) => alias);
}

export function tellOfRotating({ kms, past, keep, key }: Stage): void {
  describe("RotateKey", () => {
    let signature: Uint8Array;

    it("makes a key like the old one in its place", async () => {
      const { keyId } = key("invoices");
      signature = (await kms.sign({ keyId, data })).result?.signature ?? signature;
      const { newKey } = await kms.rotateKey({ keyId });
      expect(newKey).toMatchObject({
        alias: "invoices – Zürich-rotated",
        algorithm: "ML-DSA-65",
        usage: "SIGN",
        status: "ACTIVE",
      });
      expect(keep("new invoices", newKey).keyId).not.toBe(keyId);
      const { result } = await kms.getKey({ keyId });
      expect(result).toEqual({ ...key("invoices"), status: "ROTATED", replacedBy: newKey?.keyId });
    });

    it("leaves an old key that signs nothing more, and cannot be rotated again", async () => {
      const { keyId } = key("invoices");
      expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
      expect(await refusal(kms.batchSign({ keyId, data: [data] }))).toEqual(stateRefuses);
      expect(await refusal(kms.rotateKey({ keyId }))).toEqual(stateRefuses);
    });

    it("leaves an old key that verifies what it signed", async () => {
      const { result } = await kms.verify({ keyId: key("invoices").keyId, data, signature });
      expect(result).toMatchObject({ valid: true });
    });

    it("gives a new key that signs, and does not verify what the old one signed", async () => {
      const { keyId, publicKeyPem } = key("new invoices");
      const { result } = await kms.sign({ keyId, data });
      expect(isSignatureOf(publicKeyPem, result?.signature, data)).toBe(true);
      expect((await kms.verify({ keyId, data, signature })).result).toMatchObject({ valid: false });
    });

    it("lists the old key as ROTATED", async () => {
      const { keys } = await kms.listKeys({ status: "ROTATED" });
      const before = past().keys.filter(({ status }) => status === "ROTATED").length;
      expect(keys.slice(before).map(({ keyId }) => keyId)).toEqual([key("invoices").keyId]);
    });
  });
}

export function tellOfRetries({ kms, keep, key }: Stage): void {
  describe("a call with an Idempotency-Key", () => {
    const story = randomUUID();
    const once = (name: string) => ({ headers: { "Idempotency-Key": `${story} ${name}` } });

    it("makes one key, however often it is made", async () => {
      const first = await kms.createKey({ alias: "orders" }, once("order 1"));
      keep("orders", first.result);
      expect(await kms.createKey({ alias: "orders" }, once("order 1"))).toEqual(first);
    });

    it("makes one key if it is made twice at one moment", async () => {
      const make = () => kms.createKey({ alias: "drafts" }, once("order 2"));
      const [one, other] = await Promise.all([make(), make()]);
      expect(keep("drafts", one.result)).toEqual(other.result);
    });

    it("rotates a key once, and answers a retry as the first call", async () => {
      const { keyId } = key("drafts");
      const first = await kms.rotateKey({ keyId }, once("order 3"));
      keep("new drafts", first.newKey);
      expect(await kms.rotateKey({ keyId }, once("order 3"))).toEqual(first);
    });

    it("destroys a key once, and answers a retry as the first call", async () => {
      const { keyId } = key("drafts");
      const first = await kms.destroyKey({ keyId }, once("order 4"));
      expect(first).toMatchObject({ keyId, newStatus: "DESTROYED" });
      expect(await kms.destroyKey({ keyId }, once("order 4"))).toEqual(first);
      expect(await refusal(kms.destroyKey({ keyId }, once("order 5")))).toEqual(stateRefuses);
    });

    it("is refused if another request had the same key", async () => {
      expect(await refusal(kms.createKey({ alias: "other" }, once("order 1")))).toEqual({
        code: "AlreadyExists",
        reason: "IDEMPOTENCY_KEY_REUSED",
      });
    });

    it("is refused if the key has more than 255 characters", async () => {
      expect(await refusal(kms.createKey({}, once("x".repeat(255))))).toEqual({
        code: "InvalidArgument",
        reason: "IDEMPOTENCY_KEY_INVALID",
      });
    });
  });
}

export function tellOfDestroying({ kms, key }: Stage): void {
  describe("DestroyKey", () => {
    it.each(["new invoices", "invoices", "secrets"])(
      "destroys the key of %s, and GetKey says so",
      async (name) => {
        const { keyId, publicKeyPem } = key(name);
        expect(await kms.destroyKey({ keyId })).toMatchObject({ keyId, newStatus: "DESTROYED" });
        expect((await kms.getKey({ keyId })).result).toMatchObject({
          keyId,
          status: "DESTROYED",
          publicKeyPem,
        });
      },
    );

    it("leaves a key that neither signs nor verifies, and cannot be destroyed again", async () => {
      const { keyId } = key("invoices");
      const signature = new Uint8Array(3309);
      expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
      expect(await refusal(kms.verify({ keyId, data, signature }))).toEqual(stateRefuses);
      expect(await refusal(kms.destroyKey({ keyId }))).toEqual(stateRefuses);
    });

    it("leaves a key that recovers no secret", async () => {
      const order = { keyId: key("secrets").keyId, ciphertext: new Uint8Array(1088) };
      expect(await refusal(kms.decapsulate(order))).toEqual(stateRefuses);
    });
  });
}
