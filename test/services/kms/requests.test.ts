/** What the fields of a request may contain, alone and together. */
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, reused, stateRefuses } from "../../support/refusals.ts";
import { present, restRefusal } from "../answers.ts";
import { createKey, describeKms, type KmsClient, readDeeds, withKey } from "./kms-server.ts";

const data = bytesOf("data");
const mu = new Uint8Array(64).fill(1);
const context = new Uint8Array(256);
const signature = new Uint8Array(2420);
const operations = ["SIGN"];
const day = 86_400;
const googleName = "projects/p/locations/l/keyRings/r/cryptoKeys/k";
const nameFields = ["dnsNames", "ipAddresses", "emails", "uris"];
const manyLabels = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, ""]));
const manyNames = Array.from({ length: 101 }, (_, i) => `a${i}.test`);

type Row = readonly [what: string, request: object, ...fields: string[]];

/** Each request also has the ID of an ML-DSA-44 key, unless it has its own. */
const rows: Readonly<Record<string, readonly Row[]>> = {
  getKey: ["", "a\nb", "a".repeat(256)].map((keyId) => [
    `the ID ${JSON.stringify(keyId)}`,
    { keyId },
    "keyId",
  ]),
  createKey: [
    ["usage KEM of an ML-DSA key", { usage: "KEM", algorithm: "ML-DSA-65" }, "usage"],
    ["usage SIGN of an ML-KEM key", { usage: "SIGN", algorithm: "ML-KEM-768" }, "usage"],
    ["usage ENCRYPT without HPKE", { usage: "ENCRYPT", algorithm: "ML-KEM-512" }, "usage"],
    ["usage ENCRYPT of an ML-DSA key", { usage: "ENCRYPT", algorithm: "ML-DSA-65" }, "usage"],
    ["an unknown usage", { usage: "BOTH" }, "usage"],
    ["a usage in lower case", { usage: "sign" }, "usage"],
    ["an alias of 256 characters", { alias: "a".repeat(256) }, "alias"],
    ["an alias with a line end", { alias: "a\nb" }, "alias"],
    ["an alias with NUL", { alias: "a\0b" }, "alias"],
    ["an alias with a control character of Latin-1", { alias: "a\u0085b" }, "alias"],
    ["65 labels", { labels: manyLabels }, "labels"],
    ["a label without a name", { labels: { "": "x" } }, 'labels[""]'],
    ["a label whose name has a space", { labels: { "a b": "x" } }, 'labels["a b"]'],
    ["a label of 256 characters", { labels: { a: "x".repeat(256) } }, 'labels["a"]'],
    ["a label with a control character", { labels: { a: "x\n" } }, 'labels["a"]'],
    ["a rotation period without a name", { rotationPeriodSeconds: day }, "name", "rotationPeriodSeconds"],
    ["a period below a day", { name: "short", rotationPeriodSeconds: day - 1 }, "rotationPeriodSeconds"],
    ["a name of Google's interface for ENCRYPT", { usage: "ENCRYPT", name: googleName }, "name"],
    ...["a b", "é", "a\n", "a/1", "a/2026", "a".repeat(256), "a:b", "a%2Fb", "a\0b"]
      .concat("..", "a/../b", "./a", "a//b", "/a", "a/")
      .map((name): Row => [`the name ${JSON.stringify(name)}`, { name }, "name"]),
  ],
  listKeys: [
    ["an unknown status", { status: "LOST" }, "status"],
    ["a status in lower case", { status: "active" }, "status"],
    ["an unknown algorithm", { algorithm: "RSA" }, "algorithm"],
    ["a name with NUL", { name: "a\0b" }, "name"],
  ],
  exportPublicKeys: [["a name with NUL", { name: "a\0b" }, "name"]],
  createGrant: [
    ["a name with NUL", { keyId: "", name: "a\0b", grantee: "bob", operations }, "name"],
    ["a grantee with NUL", { grantee: "a\0b", operations }, "grantee"],
  ],
  destroyKey: [10_368_001, 2 ** 32 - 1].map(
    (afterSeconds): Row => [`a waiting period of ${afterSeconds} seconds`, { afterSeconds }, "afterSeconds"],
  ),
  sign: [
    ["a context of 256 bytes", { data, context }, "context"],
    ["no keyId", { keyId: "", data }, "keyId"],
    ["neither data nor mu", {}, "data", "mu"],
    ["a context and neither data nor mu", { context: data }, "data", "mu"],
    ["data and mu", { data, mu }, "data", "mu"],
    ["mu and a context", { mu, context: data }, "context", "mu"],
    ["a mu of 63 bytes", { mu: mu.subarray(1) }, "mu"],
    ["a mu of 65 bytes", { mu: new Uint8Array(65) }, "mu"],
  ],
  batchSign: [0, 1001].map((count) => [`${count} messages`, { data: Array(count).fill(data) }, "data"]),
  verify: [
    ["no keyId", { keyId: "", data, signature }, "keyId"],
    ["no data", { signature }, "data"],
    ["no signature", { data }, "signature"],
    ["a context of 256 bytes", { data, signature, context }, "context"],
  ],
  decapsulate: [
    ["no keyId", { keyId: "", ciphertext: new Uint8Array(768) }, "keyId"],
    ["no ciphertext", {}, "ciphertext"],
  ],
  encrypt: ["plaintext", "associatedData"].map(
    (field): Row => [`${field} above 64 KiB`, { [field]: new Uint8Array(65_537) }, field],
  ),
  importKey: [["no token", { wrappedKey: data, algorithm: "ML-DSA-44" }, "importToken"]],
  createCsr: [
    ["an invalid subject", { subject: "release" }, "subject"],
    ["a subject that is too long", { subject: `CN=${"a".repeat(2048)}` }, "subject"],
    ["a host name with NUL", { dnsNames: ["a.test", "b.test\0.c.test"] }, "dnsNames[1]"],
    ["an invalid address", { ipAddresses: ["10.0.0.1", "10.0.0"] }, "ipAddresses[1]"],
    ["an email address with a name", { emails: ["Ada <ada@example.com>"] }, "emails[0]"],
    ["a relative URI", { uris: ["/release"] }, "uris[0]"],
    ["a URI that is too long", { uris: [`urn:${"a".repeat(2045)}`] }, "uris[0]"],
    ["the same name twice", { dnsNames: ["a.test", "a.test"] }, "dnsNames"],
    ["no name at all", {}, "subject", ...nameFields],
    [
      "more than 100 names of all kinds",
      { dnsNames: manyNames.slice(1), emails: ["a@a.test"] },
      ...nameFields,
    ],
  ],
  getAuditLog: [
    ["a page size of 1001", { pageSize: 1001 }, "pageSize"],
    ["a page size of -1", { pageSize: -1 }, "pageSize"],
    ["an invalid page token", { pageToken: "MQ" }, "pageToken"],
  ],
  watchAuditLog: [-1, 0.5, 2 ** 53, Number.NaN, 1e6].map(
    (afterSequence): Row => [`the start after entry ${afterSequence}`, { afterSequence }, "afterSequence"],
  ),
};

/** Makes a call that answers once or with a stream. */
async function call(kms: KmsClient, rpc: string, request: object): Promise<unknown> {
  const calls = kms as unknown as Record<string, (request: object) => object>;
  const answer = calls[rpc]?.(request);
  return answer !== undefined && Symbol.asyncIterator in answer
    ? Array.fromAsync(answer as AsyncIterable<unknown>)
    : answer;
}

describeKms("KmsService rejects in", ({ shared }) => {
  const all = Object.entries(rows).flatMap(([rpc, rows]) =>
    rows.map(([what, request, ...fields]) => ({ rpc, what, request, fields })),
  );
  it.each(all)("$rpc $what, and leaves no entry", async ({ rpc, request, fields }) => {
    const { kms, keyId } = await withKey(shared());
    const { totalSize } = await kms.getAuditLog({ pageSize: 1 });
    expect(await refusal(call(kms, rpc, { keyId, ...request }))).toEqual(invalid(...fields));
    expect((await kms.getAuditLog({ pageSize: 1 })).totalSize).toBe(totalSize);
  });
});

const under = (idempotencyKey: string) => ({ headers: { "idempotency-key": idempotencyKey } });

describeKms("an Idempotency-Key", ({ kms, rest, shared }) => {
  it("is shared across all protocols, and does not depend on the order of labels, random in Go", async () => {
    const { kms, connect, rest } = await shared();
    const first = await kms.createKey({ labels: { team: "pay", env: "prod", "1": "one" } }, under("labels"));
    const labels = { env: "prod", "1": "one", team: "pay" };
    for (const client of [kms, connect])
      expect(await client.createKey({ labels }, under("labels"))).toEqual(first);
    const { json } = await rest("POST /api/kms/create-key", { labels }, { "idempotency-key": "labels" });
    expect(json).toMatchObject({ result: { keyId: present(first.result).keyId } });
    const other = { ...labels, env: "test" };
    expect(await refusal(kms.createKey({ labels: other }, under("labels")))).toEqual(reused);
  });

  it("distinguishes DestroyKey and RotateKey with the same keyId, and records the refusal", async () => {
    const { kms, keyId } = await withKey(shared());
    await kms.rotateKey({ keyId }, under("rotate"));
    expect(await refusal(kms.destroyKey({ keyId }, under("rotate")))).toEqual(reused);
    expect((await readDeeds(kms, keyId)).at(-1)).toBe("DESTROY REFUSED reason=IDEMPOTENCY_KEY_REUSED");
  });

  it.each(["a", "a".repeat(255), "~!@ #{}"])("may be %j", async (name) => {
    const first = await kms.createKey({}, under(name));
    expect(await kms.createKey({}, under(name))).toEqual(first);
  });

  it.each(["a".repeat(256), "", "caf\u00e9", "a\tb"])("may not be %j", async (name) => {
    const { keyCount } = await kms.getHealth({});
    const answer = await rest("POST /api/kms/create-key", {}, { "idempotency-key": name });
    const reason = "IDEMPOTENCY_KEY_INVALID";
    expect(restRefusal(answer)).toMatchObject({ status: 400, reason, fields: ["idempotency-key"] });
    expect((await kms.getHealth({})).keyCount).toBe(keyCount);
  });

  it("does not store refusals, and has no effect on calls that only read or use keys", async () => {
    const order = under("refused first");
    const { keyId } = await createKey(kms);
    expect((await kms.sign({ keyId, data: bytesOf("x") }, order)).status).toBe("success");
    await kms.destroyKey({ keyId });
    for (const change of ["destroyKey", "rotateKey"] as const)
      expect(await refusal(kms[change]({ keyId }, order))).toEqual(stateRefuses);
    expect((await kms.getKey({ keyId }, order)).result?.status).toBe("DESTROYED");
    expect((await kms.createKey({}, order)).status).toBe("success");
  });
});
