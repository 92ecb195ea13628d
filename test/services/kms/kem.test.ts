import { createPublicKey, encapsulate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { createKey, describeKms } from "./kms-server.ts";

/** Ciphertext lengths: FIPS 203, table 3. */
const ciphertextBytes = { "ML-KEM-512": 768, "ML-KEM-768": 1088, "ML-KEM-1024": 1568 };

describeKms("KmsService.Encapsulate and Decapsulate", (_start, shared) => {
  describe.each(Object.entries(ciphertextBytes))("with a %s key", (algorithm, bytes) => {
    it("agree on a 32-byte secret", async () => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const sent = await kms.encapsulate({ keyId });
      const { ciphertext, sharedSecret } = present(sent.result);
      const received = await kms.decapsulate({ keyId, ciphertext });
      expect([sent.status, received.status]).toEqual(["success", "success"]);
      expect(ciphertext).toHaveLength(bytes);
      expect(sharedSecret).toHaveLength(32);
      expect({ ...sent.result }).toMatchObject({ keyId, algorithm });
      const about = { $typeName: "kms.DecapsulateResult", keyId, algorithm };
      expect({ ...received.result }).toEqual({ ...about, sharedSecret });
    });

    it("agree with an outsider who has only the public key", async () => {
      const { kms } = await shared();
      const { keyId, publicKeyPem } = await createKey(kms, { algorithm });
      const { ciphertext, sharedKey } = encapsulate(createPublicKey(present(publicKeyPem)));
      const { result } = await kms.decapsulate({ keyId, ciphertext });
      expect(result?.sharedSecret).toEqual(new Uint8Array(sharedKey));
    });

    it.each([bytes - 1, bytes + 1, 1])("reject a ciphertext of %i bytes", async (length) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const lengthInvalid = { code: "InvalidArgument", reason: "LENGTH_INVALID", fields: ["ciphertext"] };
      const call = kms.decapsulate({ keyId, ciphertext: new Uint8Array(length).fill(1) });
      expect(await refusal(call)).toEqual(lengthInvalid);
    });

    it("still recover earlier secrets after the key was rotated", async () => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const { ciphertext, sharedSecret } = present((await kms.encapsulate({ keyId })).result);
      const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
      const old = await kms.decapsulate({ keyId, ciphertext });
      const fresh = await kms.decapsulate({ keyId: newKeyId, ciphertext });
      expect(old.result?.sharedSecret).toEqual(sharedSecret);
      expect(fresh.result?.sharedSecret).not.toEqual(sharedSecret);
    });
  });

  it.each([
    ["no keyId", { keyId: "" }, "keyId"],
    ["no ciphertext", { ciphertext: new Uint8Array() }, "ciphertext"],
  ])("refuse %s", async (_what, change, field) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { algorithm: "ML-KEM-512" });
    const request = { keyId, ciphertext: new Uint8Array(768), ...change };
    const invalid = { code: "InvalidArgument", reason: "FIELD_INVALID", fields: [field] };
    expect(await refusal(kms.decapsulate(request))).toEqual(invalid);
  });

  it("reject an empty keyId before they create a secret", async () => {
    const { kms } = await shared();
    const invalid = { code: "InvalidArgument", reason: "FIELD_INVALID", fields: ["keyId"] };
    expect(await refusal(kms.encapsulate({ keyId: "" }))).toEqual(invalid);
  });
});
