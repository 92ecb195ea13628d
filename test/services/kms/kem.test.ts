import { createPublicKey, encapsulate } from "node:crypto";
import { expect, it } from "vitest";
import { refusal } from "../../support/refusal.ts";
import { invalid, wrongLength } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms } from "./kms-server.ts";

/** Ciphertext lengths: FIPS 203, table 3. */
const ciphertextBytes = { "ML-KEM-512": 768, "ML-KEM-768": 1088, "ML-KEM-1024": 1568 };

describeKms("KmsService.Encapsulate and Decapsulate", (_start, shared) => {
  it.each(Object.entries(ciphertextBytes))(
    "agree on a 32-byte secret with a %s key",
    async (algorithm, bytes) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const sent = await kms.encapsulate({ keyId });
      const { ciphertext, sharedSecret } = present(sent.result);
      const received = await kms.decapsulate({ keyId, ciphertext });
      expect([sent.status, received.status]).toEqual(["success", "success"]);
      expect([ciphertext.length, sharedSecret.length]).toEqual([bytes, 32]);
      expect({ ...sent.result }).toMatchObject({ keyId, algorithm });
      const about = { $typeName: "kms.DecapsulateResult", keyId, algorithm };
      expect({ ...received.result }).toEqual({ ...about, sharedSecret });
      for (const length of [bytes - 1, bytes + 1, 1]) {
        const wrong = kms.decapsulate({ keyId, ciphertext: new Uint8Array(length).fill(1) });
        expect(await refusal(wrong)).toEqual(wrongLength("ciphertext"));
      }
    },
  );

  it("agree with an outsider who has only the public key, even after a rotation", async () => {
    const { kms } = await shared();
    const { keyId, publicKeyPem } = await createKey(kms, { algorithm: "ML-KEM-512" });
    const { ciphertext, sharedKey } = encapsulate(createPublicKey(present(publicKeyPem)));
    const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
    const old = await kms.decapsulate({ keyId, ciphertext });
    const fresh = await kms.decapsulate({ keyId: newKeyId, ciphertext });
    expect(old.result?.sharedSecret).toEqual(new Uint8Array(sharedKey));
    expect(fresh.result?.sharedSecret).not.toEqual(new Uint8Array(sharedKey));
  });

  it.each([
    ["keyId", { keyId: "" }],
    ["ciphertext", { ciphertext: new Uint8Array() }],
  ])("reject an empty %s", async (field, change) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { algorithm: "ML-KEM-512" });
    const request = { keyId, ciphertext: new Uint8Array(768), ...change };
    expect(await refusal(kms.decapsulate(request))).toEqual(invalid(field));
  });
});
