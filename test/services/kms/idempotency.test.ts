import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { reused } from "../../support/refusals.ts";
import { present, restRefusal } from "../answers.ts";
import { createKey, describeKmsOnBoth, describeReplicas, type KmsServer, readDeeds } from "./kms-server.ts";

const under = (idempotencyKey: string) => ({ headers: { "idempotency-key": idempotencyKey } });

let names = 0;
/** Returns a name that no other test has used. */
function freshName(): string {
  names += 1;
  return `order ${names}`;
}

describeKmsOnBoth("an Idempotency-Key", (start, shared) => {
  it("makes RotateKey return the first response again, and rotate once", async () => {
    const { kms } = await shared();
    const order = under(freshName());
    const { keyId } = await createKey(kms);
    const first = await kms.rotateKey({ keyId }, order);
    expect(await kms.rotateKey({ keyId }, order)).toEqual(first);
    const newKeyId = present(first.newKey).keyId;
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([`ROTATE OK newKeyId=${newKeyId}`]);
    expect(await readDeeds(kms, newKeyId)).toHaveLength(1);
  });

  it("is shared across all protocols", async () => {
    const { kms, connect, rest } = await shared();
    const name = freshName();
    const request = { alias: "till 7", algorithm: "ML-KEM-512", usage: "KEM" };
    const first = await kms.createKey(request, under(name));
    expect(await connect.createKey(request, under(name))).toEqual(first);
    const { json } = await rest("POST /api/kms/create-key", request, { "idempotency-key": name });
    expect(json).toMatchObject({ result: { keyId: present(first.result).keyId } });
  });

  it("returns the original response, even if the key has changed since", async () => {
    const { kms } = await shared();
    const order = under(freshName());
    const first = await kms.createKey({ algorithm: "ML-DSA-44" }, order);
    await kms.destroyKey({ keyId: present(first.result).keyId });
    expect(await kms.createKey({ algorithm: "ML-DSA-44" }, order)).toEqual(first);
  });

  it("survives a restart", async () => {
    const before = await start();
    const first = await before.kms.createKey({}, under("order"));
    await before.close();
    const after = await start({ database: before.database });
    expect(await after.kms.createKey({}, under("order"))).toEqual(first);
  });

  it("rejects a different request under the same key, and still returns the first response", async () => {
    const { kms, rest } = await shared();
    const name = freshName();
    const first = await kms.createKey({ alias: "one" }, under(name));
    const { keyId } = present(first.result);
    expect(await refusal(kms.createKey({ alias: "other" }, under(name)))).toEqual(reused);
    expect(await refusal(kms.rotateKey({ keyId }, under(name)))).toEqual(reused);
    expect(await refusal(kms.destroyKey({ keyId }, under(name)))).toEqual(reused);
    const answer = await rest("POST /api/kms/create-key", { alias: "other" }, { "idempotency-key": name });
    expect(restRefusal(answer)).toMatchObject({
      status: 409,
      code: "ALREADY_EXISTS",
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
    expect(await kms.createKey({ alias: "one" }, under(name))).toEqual(first);
    expect((await kms.getKey({ keyId })).result?.status).toBe("ACTIVE");
  });

  it("distinguishes requests for DestroyKey and RotateKey with the same keyId", async () => {
    const { kms } = await shared();
    const name = freshName();
    const { keyId } = await createKey(kms);
    await kms.rotateKey({ keyId }, under(name));
    expect(await refusal(kms.destroyKey({ keyId }, under(name)))).toEqual(reused);
  });

  it.each(["a", "a".repeat(255), "~!@ #{}", "550e8400-e29b-41d4-a716-446655440000"])(
    "may be %j",
    async (name) => {
      const { kms } = await start();
      const first = await kms.createKey({}, under(name));
      expect(await kms.createKey({}, under(name))).toEqual(first);
    },
  );

  it.each([
    ["256 characters", "a".repeat(256)],
    ["none", ""],
    ["non-ASCII letters", "caf\u00e9"],
    ["a control character", "a\tb"],
  ])("is rejected with %s", async (_what, name) => {
    const { kms, rest } = await shared();
    const { keyCount } = await kms.getHealth({});
    const answer = await rest("POST /api/kms/create-key", {}, { "idempotency-key": name });
    expect(restRefusal(answer)).toEqual({
      status: 400,
      code: "INVALID_ARGUMENT",
      reason: "IDEMPOTENCY_KEY_INVALID",
      fields: ["idempotency-key"],
    });
    expect((await kms.getHealth({})).keyCount).toBe(keyCount);
  });

  it("of 256 characters is rejected over gRPC and Connect too", async () => {
    const { kms, connect } = await shared();
    const invalid = {
      code: "InvalidArgument",
      reason: "IDEMPOTENCY_KEY_INVALID",
      fields: ["idempotency-key"],
    };
    expect(await refusal(kms.createKey({}, under("a".repeat(256))))).toEqual(invalid);
    expect(await refusal(connect.createKey({}, under("a".repeat(256))))).toEqual(invalid);
  });

  it("does not store refusals", async () => {
    const { kms } = await shared();
    const name = freshName();
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId });
    const refused = { code: "FailedPrecondition", reason: "KEY_STATE_INVALID" };
    expect(await refusal(kms.destroyKey({ keyId }, under(name)))).toEqual(refused);
    expect(await refusal(kms.rotateKey({ keyId }, under(name)))).toEqual(refused);
    expect(await refusal(kms.rotateKey({ keyId: "key-no" }, under(name)))).toMatchObject({
      code: "NotFound",
    });
    expect((await kms.createKey({}, under(name))).status).toBe("success");
  });

  it("has no effect on calls that only read or use keys", async () => {
    const { kms } = await shared();
    const order = under(freshName());
    const { keyId } = present((await kms.createKey({}, order)).result);
    expect((await kms.getKey({ keyId }, order)).result?.keyId).toBe(keyId);
    expect((await kms.sign({ keyId, data: bytesOf("x") }, order)).status).toBe("success");
  });
});

describeReplicas("an Idempotency-Key", (startTwo) => {
  it("creates one key for concurrent callers of both servers", async () => {
    const servers: KmsServer[] = await startTwo();
    const calls = servers.flatMap(({ kms }) =>
      Array.from({ length: 10 }, () => kms.createKey({}, under("order"))),
    );
    const answers = await Promise.all(calls);
    expect(answers).toEqual(Array(20).fill(answers[0]));
    expect((await present(servers[0]).kms.getHealth({})).keyCount).toBe(1);
  });
});
