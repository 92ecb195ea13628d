/** Idempotency keys: test/access/idempotency.test.ts uses them with every call. */
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { reused, stateRefuses } from "../../support/refusals.ts";
import { present, restRefusal } from "../answers.ts";
import { createKey, describeKms, readDeeds, withKey } from "./kms-server.ts";

const under = (idempotencyKey: string) => ({ headers: { "idempotency-key": idempotencyKey } });

describeKms("an Idempotency-Key", (_start, shared) => {
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
    const { kms } = await shared();
    const first = await kms.createKey({}, under(name));
    expect(await kms.createKey({}, under(name))).toEqual(first);
  });

  it.each(["a".repeat(256), "", "caf\u00e9", "a\tb"])("may not be %j", async (name) => {
    const { kms, rest } = await shared();
    const { keyCount } = await kms.getHealth({});
    const answer = await rest("POST /api/kms/create-key", {}, { "idempotency-key": name });
    const reason = "IDEMPOTENCY_KEY_INVALID";
    expect(restRefusal(answer)).toMatchObject({ status: 400, reason, fields: ["idempotency-key"] });
    expect((await kms.getHealth({})).keyCount).toBe(keyCount);
  });

  it("does not store refusals, and has no effect on calls that only read or use keys", async () => {
    const { kms } = await shared();
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
