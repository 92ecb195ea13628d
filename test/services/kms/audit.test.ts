import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, readDeeds } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";
import { signParts } from "./sign-parts.ts";

const data = bytesOf("attack at dawn");
const damaged = { code: "DataLoss", reason: "STORE_DAMAGED" };

/** Uses keys in every possible way; returns the data that must not leak. */
async function useEverything(kms: KmsClient) {
  const { keyId } = await createKey(kms);
  const context = bytesOf("a context that is nobody's business");
  const signature = present((await kms.sign({ keyId, data, context })).result).signature;
  const streamed = present((await kms.signStream(signParts(keyId, data))).result).signature;
  const { results } = await kms.batchSign({ keyId, data: [data] });
  await kms.verify({ keyId, data, signature, context });
  await kms.verify({ keyId, data, signature });
  const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
  await kms.destroyKey({ keyId });
  const kem = await createKey(kms, { algorithm: "ML-KEM-512" });
  const { ciphertext, sharedSecret } = present((await kms.encapsulate({ keyId: kem.keyId })).result);
  await kms.decapsulate({ keyId: kem.keyId, ciphertext });
  const batched = present(results[0]?.signature);
  const untold = { data, context, signature, streamed, batched, ciphertext, sharedSecret };
  return { keyId, newKeyId, kemKeyId: kem.keyId, untold };
}

describeKms("the audit log", (start, shared) => {
  it("has an entry for every use of a key, in order, without signed data, verified data or secrets", async () => {
    const { kms, rest } = await start();
    const { keyId, newKeyId, kemKeyId, untold } = await useEverything(kms);
    const entries = await readAudit(kms);
    const deeds = entries.map((entry) => `${entry.keyId} ${entry.operation} ${entry.details}`);
    expect(deeds).toEqual([
      `${keyId} CREATE algorithm=ML-DSA-44, usage=SIGN`,
      `${keyId} SIGN input=data`,
      `${keyId} SIGN input=stream, bytes=${data.length}`,
      `${keyId} SIGN input=data, batchItem=1/1`,
      `${keyId} VERIFY valid=true`,
      `${keyId} VERIFY valid=false`,
      `${keyId} ROTATE newKeyId=${newKeyId}`,
      `${newKeyId} CREATE algorithm=ML-DSA-44, usage=SIGN, rotatedFrom=${keyId}`,
      `${keyId} DESTROY stateBefore=ROTATED`,
      `${kemKeyId} CREATE algorithm=ML-KEM-512, usage=KEM`,
      `${kemKeyId} ENCAPSULATE algorithm=ML-KEM-512`,
      `${kemKeyId} DECAPSULATE algorithm=ML-KEM-512`,
    ]);
    for (const entry of entries) expect(entry).toMatchObject({ outcome: "OK", user: "system" });
    const { text } = await rest("GET /api/kms/audit");
    expect(text).toContain(keyId);
    const leaked = Object.entries(untold).filter(([, bytes]) => {
      const beginning = Buffer.from(bytes).subarray(0, 12);
      return (["utf8", "base64", "hex"] as const).some((form) => text.includes(beginning.toString(form)));
    });
    expect(leaked).toEqual([]);
  });

  it("names the token's subject as the user if the server requires tokens", async () => {
    const { kms } = await start({ auth: "token" });
    const as = (subject: string) => ({ headers: { authorization: `Bearer ${subject}` } });
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" }, as("ada"))).result);
    await kms.sign({ keyId, data }, as("grace"));
    await kms.destroyKey({ keyId }, as("ada"));
    await refusal(kms.sign({ keyId, data }, as("mallory")));
    const { auditLog } = await kms.getAuditLog({}, as("auditor"));
    expect(auditLog.map(({ user, operation }) => [user, operation])).toEqual([
      ["ada", "CREATE"],
      ["grace", "SIGN"],
      ["ada", "DESTROY"],
      ["mallory", "SIGN"],
    ]);
  });

  it.each([9e15, -9e15])("is still readable after an entry's time was changed to %d ms", async (ms) => {
    const { kms, tamper } = await start();
    const { keyId } = await createKey(kms);
    await kms.sign({ keyId, data });
    const [created, signed] = await readAudit(kms, keyId);
    await tamper((db) =>
      db.updateTable("audit_entries").set({ occurred_at_ms: ms }).where("sequence", "=", 1).execute(),
    );
    expect(await readAudit(kms, keyId)).toEqual([
      { ...created, damaged: true, timestamp: timestampFromMs(0) },
      signed,
    ]);
  });

  it("has no entries for reads", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    await kms.getKey({ keyId });
    await kms.listKeys({});
    await kms.getAuditLog({ keyId });
    await kms.verifyAuditLog({});
    await kms.getHealth({});
    for await (const _ of kms.watchAuditLog({ keyId, afterSequence: 0 })) break;
    expect(await readDeeds(kms, keyId)).toEqual(["CREATE OK algorithm=ML-DSA-44, usage=SIGN"]);
  });

  it("has an entry for an attempt with the wrong length for the algorithm", async () => {
    const { kms } = await shared();
    const signing = await createKey(kms);
    const kem = await createKey(kms, { algorithm: "ML-KEM-512" });
    const wrong = bytesOf("too short");
    await refusal(kms.verify({ keyId: signing.keyId, data, signature: wrong }));
    await refusal(kms.decapsulate({ keyId: kem.keyId, ciphertext: wrong }));
    expect((await readDeeds(kms, signing.keyId)).at(-1)).toBe("VERIFY REFUSED reason=LENGTH_INVALID");
    expect((await readDeeds(kms, kem.keyId)).at(-1)).toBe("DECAPSULATE REFUSED reason=LENGTH_INVALID");
  });

  it("stores at most 100 characters of an unknown name, by which its entries can be found", async () => {
    const { kms } = await start();
    for (const keyId of ["k".repeat(255), `name/${"n".repeat(590)}/7`, `name/${"€".repeat(590)}`]) {
      await refusal(kms.sign({ keyId, data }));
      const [entry] = (await kms.getAuditLog({ outcome: "REFUSED" })).auditLog.slice(-1);
      expect(entry?.keyId).toBe(`${keyId.slice(0, 99)}…`);
    }
    expect(await readDeeds(kms, "k".repeat(255))).toEqual(["SIGN REFUSED reason=KEY_NOT_FOUND"]);
    expect(await readDeeds(kms, `name/${"n".repeat(590)}/7`)).toEqual(["SIGN REFUSED reason=KEY_NOT_FOUND"]);
  });

  it("names an unknown key as the caller did", async () => {
    const { kms } = await shared();
    const keyId = `no "key" \\ of ours: 🔑`;
    await refusal(kms.sign({ keyId, data }));
    const [entry] = await readAudit(kms, keyId);
    expect(entry).toMatchObject({ keyId, operation: "SIGN", outcome: "REFUSED", user: "system" });
  });
});

describeKms("a server that cannot write its audit log", (start) => {
  it("returns and changes nothing until it can write again", async () => {
    const { kms, tamper } = await start();
    const signing = await createKey(kms);
    const { keyId } = signing;
    const kem = await createKey(kms, { algorithm: "ML-KEM-512" });
    const { ciphertext } = present((await kms.encapsulate({ keyId: kem.keyId })).result);
    const signature = present((await kms.sign({ keyId, data })).result).signature;
    await tamper((db) => db.schema.alterTable("audit_entries").renameTo("elsewhere").execute());
    const calls = [
      kms.createKey({}),
      kms.sign({ keyId, data }),
      kms.batchSign({ keyId, data: [data] }),
      kms.signStream(signParts(keyId, data)),
      kms.verify({ keyId, data, signature }),
      kms.encapsulate({ keyId: kem.keyId }),
      kms.decapsulate({ keyId: kem.keyId, ciphertext }),
      kms.rotateKey({ keyId }),
      kms.destroyKey({ keyId }),
      kms.sign({ keyId: "key-no", data }),
    ];
    expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => damaged));
    await tamper((db) =>
      db.schema
        .alterTable("elsewhere" as "audit_entries")
        .renameTo("audit_entries")
        .execute(),
    );
    expect((await kms.getKey({ keyId })).result).toMatchObject({ ...signing, status: "ACTIVE" });
    expect(await kms.getHealth({})).toMatchObject({ keyCount: 2 });
    expect(await kms.sign({ keyId, data })).toMatchObject({ status: "success" });
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 5 });
  });

  it("refuses every call that needs an entry after the end of the log was tampered with", async () => {
    const { kms, tamper } = await start();
    const { keyId } = await createKey(kms);
    await tamper((db) =>
      db
        .updateTable("audit_head")
        .set({ head_tag: "0".repeat(64) })
        .execute(),
    );
    const calls = [kms.createKey({}), kms.sign({ keyId, data }), kms.destroyKey({ keyId })];
    expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => damaged));
  });
});
