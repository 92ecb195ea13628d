/** Idempotency keys: test/access/idempotency.test.ts uses them with every call. */
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { reused, stateRefuses } from "../../support/refusals.ts";
import { present, restRefusal } from "../answers.ts";
import { createKey, describeKms, readDeeds } from "./kms-server.ts";

const under = (idempotencyKey: string) => ({ headers: { "idempotency-key": idempotencyKey } });

describeKms("an Idempotency-Key", (_start, shared) => {
  it("is shared across all protocols", async () => {
    const { kms, connect, rest } = await shared();
    const request = { alias: "till 7", algorithm: "ML-KEM-512", usage: "KEM" };
    const first = await kms.createKey(request, under("shared"));
    expect(await connect.createKey(request, under("shared"))).toEqual(first);
    const { json } = await rest("POST /api/kms/create-key", request, { "idempotency-key": "shared" });
    expect(json).toMatchObject({ result: { keyId: present(first.result).keyId } });
  });

  it("does not depend on the order of labels, which is random in Go", async () => {
    const { kms, rest } = await shared();
    const first = await kms.createKey({ labels: { team: "pay", env: "prod", "1": "one" } }, under("labels"));
    const labels = { env: "prod", "1": "one", team: "pay" };
    expect(await kms.createKey({ labels }, under("labels"))).toEqual(first);
    const { json } = await rest("POST /api/kms/create-key", { labels }, { "idempotency-key": "labels" });
    expect(json).toMatchObject({ result: { keyId: present(first.result).keyId } });
    const other = { ...labels, env: "test" };
    expect(await refusal(kms.createKey({ labels: other }, under("labels")))).toEqual(reused);
  });

  it("distinguishes DestroyKey and RotateKey with the same keyId, and records the refusal", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    await kms.rotateKey({ keyId }, under("rotate"));
    expect(await refusal(kms.destroyKey({ keyId }, under("rotate")))).toEqual(reused);
    expect((await readDeeds(kms, keyId)).at(-1)).toBe("DESTROY REFUSED reason=IDEMPOTENCY_KEY_REUSED");
  });

  it.each(["a", "a".repeat(255), "~!@ #{}"])("may be %j", async (name) => {
    const { kms } = await shared();
    const first = await kms.createKey({}, under(name));
    expect(await kms.createKey({}, under(name))).toEqual(first);
  });

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

  it("does not store refusals, and has no effect on calls that only read or use keys", async () => {
    const { kms } = await shared();
    const order = under("refused first");
    const { keyId } = await createKey(kms);
    expect((await kms.sign({ keyId, data: bytesOf("x") }, order)).status).toBe("success");
    await kms.destroyKey({ keyId });
    expect(await refusal(kms.destroyKey({ keyId }, order))).toEqual(stateRefuses);
    expect(await refusal(kms.rotateKey({ keyId }, order))).toEqual(stateRefuses);
    expect((await kms.getKey({ keyId }, order)).result?.status).toBe("DESTROYED");
    expect((await kms.createKey({}, order)).status).toBe("success");
  });
});
