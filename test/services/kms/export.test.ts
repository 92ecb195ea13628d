/** ExportPublicKeys: the public keys that verify signatures outside the service. */
import { createPublicKey, verify } from "node:crypto";
import { calculateJwkThumbprint, importJWK } from "jose";
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { describeKms } from "./kms-server.ts";

const data = bytesOf("hello");

describeKms("KmsService.ExportPublicKeys", (start) => {
  it("returns every version that can verify, as PEM and, for ML-DSA, as JWK", async () => {
    const { kms } = await start();
    const name = "release";
    const { result } = await kms.createKey({ algorithm: "ML-DSA-44", name, labels: { team: "a" } });
    const old = present((await kms.sign({ keyId: `name/${name}`, data })).result);
    const { newKey } = await kms.rotateKey({ keyId: `name/${name}` });
    const slow = present((await kms.createKey({ algorithm: "SLH-DSA-SHA2-128f" })).result);
    await kms.createKey({ algorithm: "ML-KEM-512" });
    for (const change of ["disableKey", "destroyKey"] as const) {
      const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
      await kms[change]({ keyId });
    }
    const all = await kms.exportPublicKeys({});
    expect(all.exported).toMatchObject([
      { keyId: result?.keyId, name, version: 1, algorithm: "ML-DSA-44", status: "ROTATED" },
      { keyId: newKey?.keyId, name, version: 2, algorithm: "ML-DSA-44", status: "ACTIVE" },
      { keyId: slow.keyId, name: "", version: 0, algorithm: "SLH-DSA-SHA2-128f", status: "ACTIVE", kid: "" },
    ]);
    expect(all.keys.map(({ kid }) => kid)).toEqual(all.exported.slice(0, 2).map(({ kid }) => kid));
    for (const { $typeName: _, ...jwk } of all.keys) {
      expect(await importJWK(jwk)).toMatchObject({ type: "public" });
      expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
    }
    const blocks = all.pem.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----\n/g) ?? [];
    expect(blocks.join("")).toBe(all.pem);
    expect(blocks).toEqual(all.exported.map(({ publicKeyPem }) => publicKeyPem));
    const verifying = blocks.filter((pem) => verify(null, data, createPublicKey(pem), old.signature));
    expect(verifying).toEqual([blocks[0]]);
    expect((await kms.exportPublicKeys({ name })).totalSize).toBe(2);
    expect((await kms.exportPublicKeys({ label: "team=a" })).totalSize).toBe(2);
    expect((await kms.exportPublicKeys({ algorithm: "SLH-DSA-SHA2-128f" })).totalSize).toBe(1);
    const first = await kms.exportPublicKeys({ pageSize: 2 });
    const rest = await kms.exportPublicKeys({ pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.exported, ...rest.exported]).toEqual(all.exported);
    expect(rest.nextPageToken).toBe("");
  });
});

describeKms("GET /api/kms/public-keys", (_start, shared) => {
  it("returns a JSON Web Key Set that jose accepts unchanged", async () => {
    const { kms, rest } = await shared();
    await kms.createKey({ name: "jwks" });
    const { status, json } = await rest("GET /api/kms/public-keys?name=jwks");
    expect(status).toBe(200);
    expect(json.keys).toEqual([
      {
        kty: "AKP",
        alg: "ML-DSA-65",
        use: "sig",
        kid: expect.stringMatching(/^[\w-]{43}$/),
        pub: expect.stringMatching(/^[\w-]{2603}$/),
      },
    ]);
  });

  it("rejects a page token from a different list", async () => {
    const { kms } = await shared();
    await kms.createKey({ algorithm: "ML-DSA-44" });
    await kms.createKey({ algorithm: "ML-DSA-44" });
    const { nextPageToken } = await kms.exportPublicKeys({ pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    const refused = { reason: "FIELD_INVALID", fields: ["pageToken"] };
    expect(await refusal(kms.exportPublicKeys({ name: "x", pageToken: nextPageToken }))).toMatchObject(
      refused,
    );
    expect(await refusal(kms.listKeys({ pageToken: nextPageToken }))).toMatchObject(refused);
  });
});
