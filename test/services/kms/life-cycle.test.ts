import { timestampDate } from "@bufbuild/protobuf/wkt";
import { calculateJwkThumbprint, importJWK } from "jose";
import { expect, it } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { failureOf, refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms } from "./kms-server.ts";

const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };
const unknown = "key-00000000-0000-4000-8000-000000000000";

describeKms("KmsService.GetKey", (_start, shared) => {
  it.each(["ML-DSA-44", "SLH-DSA-SHA2-128f", "ML-KEM-512"])(
    "returns for a %s key what CreateKey returned",
    async (algorithm) => {
      const { kms } = await shared();
      const { result } = await kms.createKey({ algorithm, alias: "till 7" });
      const answer = await kms.getKey({ keyId: present(result).keyId });
      expect(answer.status).toBe("success");
      expect({ ...answer.result, publicJwk: undefined }).toEqual({ ...result, publicJwk: undefined });
    },
  );

  it("returns a JWK that jose accepts, with its RFC 7638 thumbprint as kid", async () => {
    const { kms } = await shared();
    const { keyId, publicKey } = await createKey(kms);
    const { $typeName: _, ...jwk } = present((await kms.getKey({ keyId })).result?.publicJwk);
    expect(jwk).toMatchObject({ kty: "AKP", alg: "ML-DSA-44" });
    expect(Buffer.from(present(jwk.pub), "base64url")).toEqual(Buffer.from(present(publicKey)));
    expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
    expect(await importJWK(jwk)).toMatchObject({ type: "public" });
  });

  it("still describes a destroyed key", async () => {
    const { kms } = await shared();
    const key = await createKey(kms);
    await kms.destroyKey({ keyId: key.keyId });
    const { result } = await kms.getKey({ keyId: key.keyId });
    expect(result).toMatchObject({ ...key, status: "DESTROYED" });
  });

  it.each(["", "a\nb", "a".repeat(256)])("rejects the keyId %j", async (keyId) => {
    const { kms } = await shared();
    expect(await refusal(kms.getKey({ keyId }))).toEqual(invalid("keyId"));
  });

  it.each([unknown, "nonsense", "' or 1=1 --", "%", "a".repeat(255), "🔑"])(
    "does not find the keyId %j",
    async (keyId) => {
      const { kms } = await shared();
      expect(await refusal(kms.getKey({ keyId }))).toEqual(notFound);
    },
  );
});

describeKms("KmsService.RotateKey", (_start, shared) => {
  it.each(["SLH-DSA-SHAKE-128f", "ML-KEM-768"])(
    "creates a new ACTIVE %s key in place of the old one, which becomes ROTATED",
    async (algorithm) => {
      const { kms } = await shared();
      const old = await createKey(kms, { algorithm, alias: "till" });
      const { status, newKey } = await kms.rotateKey({ keyId: old.keyId });
      expect(status).toBe("success");
      expect(newKey).toMatchObject({
        alias: "till-rotated",
        algorithm,
        usage: old.usage,
        status: "ACTIVE",
        publicKey: expect.any(Uint8Array),
        publicKeyPem: expect.stringContaining("PUBLIC KEY"),
      });
      const { keyId, publicKey, createdAt } = present(newKey);
      expect(keyId).toMatch(/^key-[0-9a-f-]{36}$/);
      expect(keyId).not.toBe(old.keyId);
      expect(publicKey).not.toEqual(old.publicKey);
      expect(timestampDate(present(createdAt)).getTime()).toBeGreaterThanOrEqual(
        timestampDate(present(old.createdAt)).getTime(),
      );
      expect((await kms.getKey({ keyId })).result).toMatchObject(present(newKey));
      expect((await kms.getKey({ keyId: old.keyId })).result).toMatchObject({ ...old, status: "ROTATED" });
    },
  );

  it("names the replacement of a rotated key: in GetKey, in lists, and when the old key is rejected", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect((await kms.getKey({ keyId })).result?.replacedBy).toBeUndefined();
    const { keyId: replacedBy } = present((await kms.rotateKey({ keyId })).newKey);
    expect((await kms.getKey({ keyId })).result).toMatchObject({ status: "ROTATED", replacedBy });
    const { keys } = await kms.listKeys({});
    expect(keys.find((key) => key.keyId === keyId)?.replacedBy).toBe(replacedBy);
    const failure = await failureOf(kms.sign({ keyId, data: bytesOf("data") }));
    expect(failure.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({ replacedBy });
    expect((await kms.getKey({ keyId: replacedBy })).result?.replacedBy).toBeUndefined();
  });

  it("gives helpful advice: the replacement for new signatures only, and the public key for old ones", async () => {
    const { kms } = await shared();
    const data = bytesOf("data");
    const { keyId } = await createKey(kms);
    const signature = present((await kms.sign({ keyId, data })).result).signature;
    const messageOf = async (call: Promise<unknown>) => (await failureOf(call)).rawMessage;
    const publicKey = "verify with its public key, which GetKey returns";
    await kms.disableKey({ keyId });
    expect(await messageOf(kms.sign({ keyId, data }))).toMatch(/; enable it$/);
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toContain(`; enable it, or ${publicKey}`);
    await kms.enableKey({ keyId });
    const { keyId: next } = present((await kms.rotateKey({ keyId })).newKey);
    expect(await messageOf(kms.sign({ keyId, data }))).toContain(`; use ${next}`);
    await kms.destroyKey({ keyId, afterSeconds: 86_400 });
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toContain("; restore and enable it, or ");
    await kms.destroyKey({ keyId });
    const destroyed = `key ${keyId} is DESTROYED and does not allow VERIFY; ${publicKey}`;
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toBe(destroyed);
    expect(await messageOf(kms.rotateKey({ keyId }))).toMatch(/ROTATE$/);
  });

  it("appends -rotated to the alias each time, until it has more than 255 characters", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { alias: "till" });
    const second = present((await kms.rotateKey({ keyId })).newKey);
    const third = present((await kms.rotateKey({ keyId: second.keyId })).newKey);
    expect([second.alias, third.alias]).toEqual(["till-rotated", "till-rotated-rotated"]);
    const long = await createKey(kms, { alias: "a".repeat(255) });
    const { newKey } = await kms.rotateKey({ keyId: long.keyId });
    expect(newKey?.alias).toBe(`${long.alias}-rotated`);
    const { newKey: last } = await kms.rotateKey({ keyId: present(newKey).keyId });
    expect(last?.alias).toBe(newKey?.alias);
  });
});

describeKms("KmsService.DestroyKey", (_start, shared) => {
  it("erases the sealed secret half of only this key", async () => {
    const { kms, store } = await shared();
    const [key, other] = [await createKey(kms), await createKey(kms)];
    const countSecrets = async ({ keyId }: { keyId: string }) =>
      (
        await store.reader
          .selectFrom("sealed_secrets")
          .select("identity")
          .where("identity", "like", `%${keyId}%`)
          .execute()
      ).length;
    expect(await countSecrets(key)).toBe(1);
    await kms.destroyKey({ keyId: key.keyId });
    expect(await countSecrets(key)).toBe(0);
    expect(await countSecrets(other)).toBe(1);
    expect((await kms.sign({ keyId: other.keyId, data: bytesOf("x") })).status).toBe("success");
  });
});

describeKms("KmsService.GetHealth", (start) => {
  it("counts all keys, including destroyed ones", async () => {
    const { kms } = await start();
    const up = { $typeName: "kms.KmsServiceGetHealthResponse", status: "success", serviceStatus: "UP" };
    expect({ ...(await kms.getHealth({})) }).toEqual({ ...up, keyCount: 0 });
    const { keyId } = await createKey(kms);
    await createKey(kms, { algorithm: "ML-KEM-512" });
    await kms.rotateKey({ keyId });
    await kms.destroyKey({ keyId });
    expect({ ...(await kms.getHealth({})) }).toEqual({ ...up, keyCount: 3 });
  });
});

describeKms("a change that has already happened", (_start, shared) => {
  it.each([
    ["enableKey", "is already active"],
    ["disableKey", "is already disabled"],
    ["restoreKey", "was destroyed; its secret key cannot be restored"],
  ] as const)("is rejected with a clear message: %s", async (call, sentence) => {
    const { kms } = await shared();
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
    if (call === "disableKey") await kms.disableKey({ keyId });
    if (call === "restoreKey") await kms.destroyKey({ keyId });
    await expect(kms[call]({ keyId })).rejects.toMatchObject({ rawMessage: `key ${keyId} ${sentence}` });
  });
});
