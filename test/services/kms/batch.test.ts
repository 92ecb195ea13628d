import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, readDeeds, verifiesOutside } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const messages = (count: number) => Array.from({ length: count }, (_, i) => bytesOf(`message ${i}`));

describeKms("KmsService.BatchSign", (_start, shared) => {
  it.each(["ML-DSA-44", "ML-DSA-65", "SLH-DSA-SHA2-128f"])(
    "signs with a key of %s each message, in their order",
    async (algorithm) => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      const data = messages(10);
      const { results, ...about } = await kms.batchSign({ keyId: key.keyId, data });
      expect(about).toMatchObject({ status: "success", keyId: key.keyId, algorithm });
      expect(results.map(({ error }) => error)).toEqual(Array(10).fill(undefined));
      const verified = results.map(({ signature }, i) =>
        verifiesOutside(key, present(data[i]), present(signature)),
      );
      expect(verified).toEqual(Array(10).fill(true));
      expect(verifiesOutside(key, present(data[1]), present(results[0]?.signature))).toBe(false);
    },
  );

  it("binds each signature to the context", async () => {
    const { kms } = await shared();
    const key = await createKey(kms);
    const context = new Uint8Array(255).fill(2);
    const { results } = await kms.batchSign({ keyId: key.keyId, data: messages(2), context });
    const verified = results.map(({ signature }, i) => [
      verifiesOutside(key, present(messages(2)[i]), present(signature), context),
      verifiesOutside(key, present(messages(2)[i]), present(signature)),
    ]);
    expect(verified).toEqual([
      [true, false],
      [true, false],
    ]);
  });

  it("tells of an empty message alone that it is wrong, and signs the others", async () => {
    const { kms } = await shared();
    const key = await createKey(kms);
    const data = [bytesOf("a"), new Uint8Array(), bytesOf("c")];
    const { status, results } = await kms.batchSign({ keyId: key.keyId, data });
    expect(status).toBe("success");
    expect(results.map(({ error }) => error && [error.code, error.reason])).toEqual([
      undefined,
      ["INVALID_ARGUMENT", "FIELD_INVALID"],
      undefined,
    ]);
    expect(results[1]?.signature).toBeUndefined();
    expect(results[1]?.error?.message).toContain("data[1]");
    expect(verifiesOutside(key, bytesOf("a"), present(results[0]?.signature))).toBe(true);
    expect(verifiesOutside(key, bytesOf("c"), present(results[2]?.signature))).toBe(true);
    expect((await readDeeds(kms, key.keyId)).slice(1)).toEqual([
      "SIGN OK input=data, batchItem=1/3",
      "SIGN REFUSED reason=FIELD_INVALID, batchItem=2/3",
      "SIGN OK input=data, batchItem=3/3",
    ]);
  });

  it("answers a batch of nothing but empty messages with an error for each", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const { results } = await kms.batchSign({ keyId, data: [new Uint8Array(), new Uint8Array()] });
    expect(results.map(({ error }) => error?.reason)).toEqual(["FIELD_INVALID", "FIELD_INVALID"]);
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([
      "SIGN REFUSED reason=FIELD_INVALID, batchItem=1/2",
      "SIGN REFUSED reason=FIELD_INVALID, batchItem=2/2",
    ]);
  });

  it("signs 1,000 messages, and each has an audit entry of its own", async () => {
    const { kms } = await shared();
    const key = await createKey(kms);
    const data = messages(1000);
    const { results } = await kms.batchSign({ keyId: key.keyId, data });
    const wrong = results.filter(
      ({ signature }, i) => !verifiesOutside(key, present(data[i]), present(signature)),
    );
    expect([results.length, wrong]).toEqual([1000, []]);
    const entries = (await readAudit(kms, key.keyId)).slice(1);
    const expected = data.map((_, i) => `SIGN OK input=data, batchItem=${i + 1}/1000`);
    expect(entries.map((entry) => `${entry.operation} ${entry.outcome} ${entry.details}`)).toEqual(expected);
  });

  it.each([0, 1001])("refuses %i messages", async (count) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.batchSign({ keyId, data: messages(count) }))).toEqual(invalid("data"));
  });

  it("refuses a context of 256 bytes", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const context = new Uint8Array(256);
    expect(await refusal(kms.batchSign({ keyId, data: messages(1), context }))).toEqual(invalid("context"));
  });

  it("refuses the whole of it for a key that does not sign, with one audit entry", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    await kms.rotateKey({ keyId });
    expect(await refusal(kms.batchSign({ keyId, data: messages(5) }))).toEqual(stateRefuses);
    expect((await readDeeds(kms, keyId)).slice(2)).toEqual(["SIGN REFUSED reason=KEY_STATE_INVALID"]);
  });

  it.each(["rotate", "destroy"] as const)(
    "refuses the whole of it for a key that somebody else comes to %s meanwhile",
    async (change) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm: "ML-DSA-87" });
      const batch = refusal(kms.batchSign({ keyId, data: messages(900) }));
      await (change === "rotate" ? kms.rotateKey({ keyId }) : kms.destroyKey({ keyId }));
      expect(await batch).toEqual(stateRefuses);
      const signed = (await readDeeds(kms, keyId)).filter((deed) => deed.startsWith("SIGN"));
      expect(signed).toEqual(["SIGN REFUSED reason=KEY_STATE_INVALID"]);
    },
  );
});
