import { createPublicKey, verify } from "node:crypto";
import { expect, it } from "vitest";
import { restRefusal } from "../answers.ts";
import { describeKms, type KmsServer } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;
const keyIdForm = /^key-[0-9a-f-]{36}$/;
const hash = /^[0-9a-f]{64}$/;
const data = Buffer.from("pay 10 to Ada").toString("base64");

/** The JSON of a key, without what only some answers have. */
const listed = (change: object = {}) => ({
  keyId: expect.stringMatching(keyIdForm),
  alias: "till",
  algorithm: "ML-DSA-44",
  usage: "SIGN",
  status: "ACTIVE",
  createdAt: expect.stringMatching(time),
  labels: {},
  origin: "GENERATED",
  ...change,
});
const record = (change: object = {}) => ({
  ...listed(),
  publicKey: expect.stringMatching(base64),
  publicKeyPem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n[\s\S]+\n-----END PUBLIC KEY-----\n$/),
  ...change,
});

async function make({ rest }: KmsServer, fields: object = {}) {
  const { json } = await rest("POST /api/kms/create-key", {
    alias: "till",
    algorithm: "ML-DSA-44",
    ...fields,
  });
  return json.result as { keyId: string; publicKey: string; publicKeyPem: string };
}

async function signWith({ rest }: KmsServer, keyId: string, fields: object = { data }): Promise<string> {
  const { json } = await rest("POST /api/kms/sign", { keyId, ...fields });
  return (json.result as { signature: string }).signature;
}

describeKms("kms.KmsService over REST", (start, shared) => {
  it("POST /api/kms/create-key", async () => {
    const { rest } = await shared();
    const request = { alias: "till", algorithm: "ML-DSA-44", usage: "SIGN" };
    const { status, json } = await rest("POST /api/kms/create-key", request);
    expect([status, json]).toStrictEqual([200, { status: "success", result: record() }]);
  });

  it("POST /api/kms/create-key with nothing in it", async () => {
    const { rest } = await shared();
    const { status, json } = await rest("POST /api/kms/create-key", {});
    const { keyId } = json.result as { keyId: string };
    const made = record({ alias: keyId, algorithm: "ML-DSA-65" });
    expect([status, json]).toStrictEqual([200, { status: "success", result: made }]);
  });

  it("POST /api/kms/sign", async () => {
    const server = await shared();
    const { keyId, publicKeyPem } = await make(server);
    const { status, json } = await server.rest("POST /api/kms/sign", { keyId, data });
    const result = { signature: expect.stringMatching(base64), keyId, algorithm: "ML-DSA-44" };
    expect([status, json]).toStrictEqual([200, { status: "success", result }]);
    const signature = Buffer.from((json.result as { signature: string }).signature, "base64");
    expect(verify(null, Buffer.from(data, "base64"), createPublicKey(publicKeyPem), signature)).toBe(true);
  });

  it("POST /api/kms/verify", async () => {
    const server = await shared();
    const { keyId } = await make(server);
    const signature = await signWith(server, keyId);
    const about = { keyId, algorithm: "ML-DSA-44" };
    const right = await server.rest("POST /api/kms/verify", { keyId, data, signature });
    expect([right.status, right.json]).toStrictEqual([
      200,
      { status: "success", result: { valid: true, ...about } },
    ]);
    const wrong = await server.rest("POST /api/kms/verify", { keyId, data: "AA==", signature });
    expect([wrong.status, wrong.json]).toStrictEqual([
      200,
      { status: "success", result: { valid: false, ...about } },
    ]);
  });

  it("QUERY /api/kms/verify answers as POST does, with an entry for each, until the key is destroyed", async () => {
    const server = await shared();
    const { keyId } = await make(server);
    const signature = await signWith(server, keyId);
    const posted = await server.rest("POST /api/kms/verify", { keyId, data, signature });
    for (const _attempt of [1, 2]) {
      const asked = await server.rest("QUERY /api/kms/verify", { keyId, data, signature });
      expect([asked.status, asked.text]).toEqual([200, posted.text]);
    }
    const entries = await readAudit(server.kms, keyId);
    expect(entries.filter(({ operation }) => operation === "VERIFY")).toHaveLength(3);
    await server.rest(`DELETE /api/kms/key/${keyId}`);
    const late = await server.rest("QUERY /api/kms/verify", { keyId, data, signature });
    expect(restRefusal(late)).toMatchObject({ status: 400, reason: "KEY_STATE_INVALID" });
  });

  it("POST /api/kms/sign and /api/kms/verify with a context, in base64 of any kind", async () => {
    const server = await shared();
    const { keyId } = await make(server);
    const bytes = Buffer.from([0xfb, 0xff, 0xfe, 0x01]);
    const signature = await signWith(server, keyId, { data, context: bytes.toString("base64") });
    for (const context of [bytes.toString("base64"), bytes.toString("base64url"), "-__-AQ=="]) {
      const unpadded = Buffer.from(signature, "base64").toString("base64url");
      const { json } = await server.rest("POST /api/kms/verify", {
        keyId,
        data,
        context,
        signature: unpadded,
      });
      expect(json).toMatchObject({ result: { valid: true } });
    }
  });

  it("POST /api/kms/rotate-key", async () => {
    const server = await shared();
    const { keyId } = await make(server);
    const { status, json } = await server.rest("POST /api/kms/rotate-key", { keyId });
    expect([status, json]).toStrictEqual([
      200,
      { status: "success", newKey: record({ alias: "till-rotated" }) },
    ]);
  });

  it("GET /api/kms/keys", async () => {
    const server = await start();
    const empty = await server.rest("GET /api/kms/keys");
    expect(empty.text).toBe('{"status":"success","keys":[],"nextPageToken":"","totalSize":0}\n');
    const { keyId } = await make(server);
    await make(server, { algorithm: "ML-KEM-512" });
    const { newKey } = (await server.rest("POST /api/kms/rotate-key", { keyId })).json;
    const all = await server.rest("GET /api/kms/keys");
    const keys = [
      listed({ keyId, status: "ROTATED", replacedBy: (newKey as { keyId: string }).keyId }),
      listed({ algorithm: "ML-KEM-512", usage: "KEM" }),
      listed({ alias: "till-rotated" }),
    ];
    expect([all.status, all.json]).toStrictEqual([
      200,
      { status: "success", keys, nextPageToken: "", totalSize: 3 },
    ]);
    const first = await server.rest("GET /api/kms/keys?status=ACTIVE&pageSize=1");
    const { nextPageToken } = first.json;
    expect(first.json).toMatchObject({ keys: [keys[1]], totalSize: 2 });
    const second = await server.rest(`GET /api/kms/keys?status=ACTIVE&pageSize=1&pageToken=${nextPageToken}`);
    expect(second.json).toMatchObject({ keys: [keys[2]], nextPageToken: "", totalSize: 2 });
  });

  it("GET /api/kms/audit", async () => {
    const server = await start();
    const empty = await server.rest("GET /api/kms/audit");
    expect(empty.text).toBe('{"status":"success","auditLog":[],"nextPageToken":"","totalSize":0}\n');
    const { keyId } = await make(server);
    await make(server);
    await server.rest("POST /api/kms/encapsulate", { keyId });
    const entry = { keyId, user: "system", timestamp: expect.stringMatching(time) };
    const auditLog = [
      {
        ...entry,
        operation: "CREATE",
        details: "algorithm=ML-DSA-44, usage=SIGN",
        sequence: 1,
        outcome: "OK",
      },
      {
        ...entry,
        operation: "ENCAPSULATE",
        details: "reason=KEY_USAGE_MISMATCH",
        sequence: 3,
        outcome: "REFUSED",
      },
    ].map((one) => ({
      ...one,
      entryHash: expect.stringMatching(hash),
      clientAddress: "127.0.0.1",
      requestId: expect.stringMatching(/^[0-9a-f]{12}-[0-9a-z]+$/),
    }));
    const { status, json } = await server.rest(`GET /api/kms/audit?keyId=${keyId}`);
    expect([status, json]).toStrictEqual([
      200,
      { status: "success", auditLog, nextPageToken: "", totalSize: 2 },
    ]);
  });

  it("DELETE /api/kms/key/{keyId}", async () => {
    const server = await shared();
    const { keyId } = await make(server);
    const { status, text } = await server.rest(`DELETE /api/kms/key/${keyId}`);
    expect(status).toBe(200);
    expect(text).toBe(`{"status":"success","keyId":"${keyId}","newStatus":"DESTROYED"}\n`);
  });

  it("GET /api/kms/health", async () => {
    const { rest } = await start();
    const { status, text } = await rest("GET /api/kms/health");
    expect([status, text]).toEqual([200, '{"status":"success","serviceStatus":"UP","keyCount":0}\n']);
  });

  it("GET /api/kms/key/{keyId}", async () => {
    const server = await shared();
    const { keyId, publicKey } = await make(server);
    const { status, json } = await server.rest(`GET /api/kms/key/${keyId}`);
    const { publicJwk, ...result } = json.result as Record<string, unknown>;
    expect([status, { ...json, result }]).toStrictEqual([
      200,
      { status: "success", result: record({ keyId }), versions: [] },
    ]);
    const pub = Buffer.from(publicKey, "base64").toString("base64url");
    expect(publicJwk).toMatchObject({
      kty: "AKP",
      alg: "ML-DSA-44",
      pub,
      kid: expect.stringMatching(/^[\w-]{43}$/),
    });
    const kem = await make(server, { algorithm: "ML-KEM-512" });
    const other = await server.rest(`GET /api/kms/key/${kem.keyId}`);
    expect(other.json).toStrictEqual({
      versions: [],
      status: "success",
      result: record({ keyId: kem.keyId, algorithm: "ML-KEM-512", usage: "KEM" }),
    });
  });

  it("POST /api/kms/batch-sign", async () => {
    const server = await shared();
    const { keyId } = await make(server);
    const { status, json } = await server.rest("POST /api/kms/batch-sign", { keyId, data: [data, data] });
    const results = Array(2).fill({ signature: expect.stringMatching(base64) });
    expect([status, json]).toStrictEqual([
      200,
      { status: "success", results, keyId, algorithm: "ML-DSA-44" },
    ]);
  });

  it("POST /api/kms/encapsulate and /api/kms/decapsulate", async () => {
    const server = await shared();
    const { keyId } = await make(server, { algorithm: "ML-KEM-768" });
    const about = { keyId, algorithm: "ML-KEM-768" };
    const sharedSecret = expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/);
    const sent = await server.rest("POST /api/kms/encapsulate", { keyId });
    const ciphertext = expect.stringMatching(base64);
    expect([sent.status, sent.json]).toStrictEqual([
      200,
      { status: "success", result: { ciphertext, sharedSecret, ...about } },
    ]);
    const result = sent.json.result as { ciphertext: string; sharedSecret: string };
    const request = { keyId, ciphertext: result.ciphertext };
    const received = await server.rest("POST /api/kms/decapsulate", request);
    expect([received.status, received.json]).toStrictEqual([
      200,
      { status: "success", result: { sharedSecret: result.sharedSecret, ...about } },
    ]);
  });

  it("POST /api/kms/verify-audit", async () => {
    const server = await start();
    await make(server);
    const { status, json } = await server.rest("POST /api/kms/verify-audit", {});
    const checkpoint = {
      sequence: 1,
      entryHash: json.head,
      signedAt: expect.stringMatching(time),
      statement: expect.stringContaining('"purpose":"audit checkpoint"'),
      signature: expect.stringMatching(base64),
      publicKey: expect.stringMatching(base64),
      publicKeyPem: expect.stringContaining("PUBLIC KEY"),
    };
    const head = expect.stringMatching(hash);
    expect([status, json]).toStrictEqual([
      200,
      { status: "success", valid: true, entries: 1, verifiedFrom: 1, head, reason: "", checkpoint },
    ]);
  });
});
