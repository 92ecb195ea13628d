import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, readDeeds, verifiesOutside } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const messages = (count: number) => Array.from({ length: count }, (_, i) => bytesOf(`message ${i}`));

describeKms("KmsService.BatchSign", (_start, shared) => {
  it.each(["ML-DSA-44", "SLH-DSA-SHA2-128f"])(
    "signs each message in order with a %s key",
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

  it("rejects the whole batch if one of its messages is empty, with one audit entry", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const data = [bytesOf("a"), new Uint8Array(), bytesOf("c")];
    expect(await refusal(kms.batchSign({ keyId, data }))).toEqual(invalid("data[1]"));
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=FIELD_INVALID"]);
    // For callers who may not use the key, it does not exist.
    const foreign = kms.batchSign({ keyId: "key-of-nobody", data });
    expect(await refusal(foreign)).toEqual({ code: "NotFound", reason: "KEY_NOT_FOUND" });
  });

  it("signs 1,000 messages, each with its own audit entry", async () => {
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

  it.each([0, 1001])("rejects %i messages", async (count) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.batchSign({ keyId, data: messages(count) }))).toEqual(invalid("data"));
  });

  it.each(["rotate", "destroy"] as const)(
    "rejects the whole batch if another caller manages to %s the key in the meantime",
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
