/** Names: stable handles of keys that are rotated. */
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { stateRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import {
  createKey,
  describeKms,
  describeKmsOnBoth,
  describeReplicas,
  type KmsServer,
  sign,
  verifiesOutside,
  withKey,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("release 1.2.3");
const taken = { code: "AlreadyExists", reason: "NAME_TAKEN" };
const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };

let count = 0;

/** Returns a name that no other test uses. */
function freshName(): string {
  count += 1;
  return `team/release-${count}`;
}

/** Creates a key with a new name on a server. */
async function withName(starting: Promise<KmsServer>) {
  const name = freshName();
  return { ...(await withKey(starting, { name })), name, handle: `name/${name}` };
}

describeKmsOnBoth("a key with a name", ({ kms, shared }) => {
  it("is suggested if its name was sent as an ID; for an alias, the error says what to use", async () => {
    const [name, other] = [freshName(), freshName()];
    await createKey(kms, { name, alias: other });
    for (const [keyId, advice] of [
      [name, `; did you mean name/${name}?`],
      [other, "; aliases are not IDs: use key-… or name/…"],
      ["key-none", ""],
    ] as const)
      await expect(kms.sign({ keyId, data })).rejects.toMatchObject({
        rawMessage: `key ${keyId} does not exist${advice}`,
      });
  });

  it("signs by name, by name and version, and by its ID", async () => {
    const { kms, name, handle, key } = await withName(shared());
    for (const keyId of [handle, `${handle}/1`, `user/system/name/${name}`, key.keyId]) {
      const result = present((await kms.sign({ keyId, data })).result);
      expect(result.keyId).toBe(key.keyId);
      expect(verifiesOutside(key, data, result.signature)).toBe(true);
    }
  });

  it("is rotated under its name, which then stands for the next version", async () => {
    const { kms, name, handle, key: first } = await withName(shared());
    expect(first).toMatchObject({ name, version: 1, isPrimary: true });
    const second = present((await kms.rotateKey({ keyId: handle })).newKey);
    expect(second).toMatchObject({ name, version: 2, isPrimary: true, algorithm: "ML-DSA-44" });
    const { result, versions } = await kms.getKey({ keyId: handle });
    expect(result?.keyId).toBe(second.keyId);
    expect(versions).toMatchObject([
      { keyId: first.keyId, version: 1, status: "ROTATED", replacedBy: second.keyId },
      { keyId: second.keyId, version: 2, status: "ACTIVE", isPrimary: true },
    ]);
    expect(versions[0]?.isPrimary).toBeUndefined();
  });

  it("still verifies with a rotated version by its number", async () => {
    const { kms, handle } = await withName(shared());
    const signature = await sign(kms, { keyId: handle, data });
    await kms.rotateKey({ keyId: handle });
    const verify = async (keyId: string) => (await kms.verify({ keyId, data, signature })).result?.valid;
    expect(await verify(`${handle}/1`)).toBe(true);
    expect(await verify(handle)).toBe(false);
    expect(await refusal(kms.sign({ keyId: `${handle}/1`, data }))).toEqual(stateRefuses);
  });

  it("does not share its name with another key, even after its destruction", async () => {
    const { kms, name, handle } = await withName(shared());
    expect(await refusal(createKey(kms, { name }))).toMatchObject(taken);
    await kms.destroyKey({ keyId: handle });
    expect(await refusal(createKey(kms, { name }))).toMatchObject(taken);
  });

  it("has audit log entries under the IDs of its versions, which can be found by its name", async () => {
    const { kms, handle, key: first } = await withName(shared());
    await kms.sign({ keyId: handle, data });
    const second = present((await kms.rotateKey({ keyId: handle })).newKey);
    const entries = await readAudit(kms, handle);
    expect(entries.map(({ keyId, operation }) => [keyId, operation])).toEqual([
      [first.keyId, "CREATE"],
      [first.keyId, "SIGN"],
      [first.keyId, "ROTATE"],
      [second.keyId, "CREATE"],
    ]);
    expect((await kms.getAuditLog({ keyId: `${handle}/2` })).auditLog).toHaveLength(1);
  });
});

describeKms("the name of a key", ({ kms, shared }) => {
  it.each(["a", "a".repeat(255), "A-Z_a.z/0-9", "2026", "a/1b", "..a/b..", "name/x", "user/y/name/z"])(
    "may be %j",
    async (name) => {
      const { kms, keyId } = await withKey(shared(), { name });
      expect((await kms.getKey({ keyId: `name/${name}` })).result?.keyId).toBe(keyId);
    },
  );

  it.each(["name/nobody", "name/nobody/1", "name/", "name", "user/nobody/name/x"])(
    "%j stands for no key",
    async (keyId) => {
      const calls = [kms.sign({ keyId, data }), kms.getKey({ keyId }), kms.rotateKey({ keyId })];
      expect(await Promise.all(calls.map(refusal))).toEqual(Array(3).fill(notFound));
    },
  );

  it.each([0, 2, 99_999_999])("does not stand for version %d of a key with one version", async (version) => {
    const { kms, handle } = await withName(shared());
    expect(await refusal(kms.sign({ keyId: `${handle}/${version}`, data }))).toMatchObject(notFound);
  });

  it("is found in a path, whether its slashes are encoded or not", async () => {
    const { rest, name, handle, keyId } = await withName(shared());
    for (const path of [handle, encodeURIComponent(handle), `user/system/name/${name}/1`])
      expect((await rest(`GET /api/kms/key/${path}`)).json).toMatchObject({ result: { keyId } });
    expect((await rest(`DELETE /api/kms/key/name/${name}`)).json).toMatchObject({ newStatus: "DESTROYED" });
  });
});

describeReplicas("a name on two servers", (startTwo) => {
  it("stands for the new version on both servers as soon as a rotation returns", async () => {
    const [one, other] = await startTwo();
    const name = freshName();
    await createKey(one.kms, { name });
    for (let version = 2; version < 8; version += 1) {
      const keyId = `name/${name}`;
      const [here, there] = version % 2 === 0 ? [one.kms, other.kms] : [other.kms, one.kms];
      await there.sign({ keyId, data });
      const newKey = present((await here.rotateKey({ keyId })).newKey);
      const signed = present((await there.sign({ keyId, data })).result);
      const { signature } = signed;
      expect(signed.keyId).toBe(newKey.keyId);
      expect(verifiesOutside(newKey, data, signature)).toBe(true);
      expect((await there.verify({ keyId, data, signature })).result?.valid).toBe(true);
    }
  });
});
