/** Example requests for the API description. */
import { answered, base64, example, someBytes, someId } from "../../calls/example.ts";

const data = base64("pay 100 to bob");
const keyId = answered("create-key", "result.keyId", someId("key"));
const kemKeyId = answered("create-kem-key", "result.keyId", someId("key"));
const encryptionKeyId = answered("create-encryption-key", "result.keyId", someId("key"));
/**
 * Placeholder for the key that the caller wraps with the answer to `get-import-parameters`; no call returns
 * it.
 */
export const wrappedKey = "wrapped-key";

export const examples = [
  example("kms.KmsService.CreateKey", "create-key", "Creates a signing key.", {
    alias: "payments",
    algorithm: "ML-DSA-65",
  }),
  example("kms.KmsService.CreateKey", "create-kem-key", "Creates a KEM key.", {
    alias: "inbox",
    algorithm: "ML-KEM-768",
    usage: "KEM",
  }),
  example("kms.KmsService.GetKey", "get-key", "Reads a key.", { keyId }),
  example("kms.KmsService.ListKeys", "list-keys", "Lists the ACTIVE keys.", {
    status: "ACTIVE",
    pageSize: 10,
  }),
  example("kms.KmsService.Sign", "sign", "Signs a payment.", { keyId, data }),
  example("kms.KmsService.Verify", "verify", "Verifies the signature of the payment.", {
    keyId,
    data,
    signature: answered("sign", "result.signature", someBytes),
  }),
  example("kms.KmsService.BatchSign", "batch-sign", "Signs two messages.", {
    keyId,
    data: [base64("first"), base64("second")],
  }),
  example("kms.KmsService.CreateCsr", "create-csr", "Creates a certificate signing request for a key.", {
    keyId,
    subject: "CN=payments,O=Example",
    dnsNames: ["payments.example.com"],
  }),
  example("kms.KmsService.Encapsulate", "encapsulate", "Generates a shared secret for a key.", {
    keyId: kemKeyId,
  }),
  example("kms.KmsService.Decapsulate", "decapsulate", "Recovers the secret.", {
    keyId: kemKeyId,
    ciphertext: answered("encapsulate", "result.ciphertext", someBytes),
  }),
  example("kms.KmsService.CreateKey", "create-encryption-key", "Creates an encryption key.", {
    alias: "vault",
    usage: "ENCRYPT",
  }),
  example("kms.KmsService.Encrypt", "encrypt", "Encrypts a password.", {
    keyId: encryptionKeyId,
    plaintext: base64("correct horse"),
    associatedData: base64("database 7"),
  }),
  example("kms.KmsService.Decrypt", "decrypt", "Decrypts it.", {
    ciphertext: answered("encrypt", "result.ciphertext", someBytes),
    associatedData: base64("database 7"),
  }),
  example("kms.KmsService.ReEncrypt", "re-encrypt", "Encrypts it under a different key.", {
    ciphertext: answered("encrypt", "result.ciphertext", someBytes),
    associatedData: base64("database 7"),
    keyId: encryptionKeyId,
  }),
  example("kms.KmsService.GetAuditLog", "get-audit-log", "Lists the uses of a key.", { keyId }),
  example(
    "kms.KmsService.WatchAuditLog",
    "watch-audit-log",
    "Streams the log, starting with the first entry.",
    {
      keyId,
      afterSequence: 0,
    },
  ),
  example("kms.KmsService.VerifyAuditLog", "verify-audit-log", "Verifies the log."),
  example(
    "kms.KmsService.WatchAuditVerification",
    "watch-audit-verification",
    "Verifies every entry, however many there are.",
  ),
  example("kms.KmsService.ExportPublicKeys", "export-public-keys", "Exports the ML-DSA-65 public keys.", {
    algorithm: "ML-DSA-65",
  }),
  example("kms.KmsService.CreateGrant", "create-grant", "Lets the build server sign with a key.", {
    keyId,
    grantee: "build-server",
    operations: ["SIGN"],
  }),
  example("kms.KmsService.GetCbom", "get-cbom", "Describes the keys in a bill of materials (CycloneDX)."),
  example("kms.KmsService.ListGrants", "list-grants", "Lists the grants for the caller's keys."),
  example("kms.KmsService.RevokeGrant", "revoke-grant", "Revokes a grant.", {
    grantId: answered("create-grant", "grant.grantId", someId("grant")),
  }),
  example("kms.KmsService.DisableKey", "disable-key", "Disables a key.", { keyId }),
  example("kms.KmsService.EnableKey", "enable-key", "Enables it again.", { keyId }),
  example("kms.KmsService.RotateKey", "rotate-key", "Replaces a key.", { keyId }),
  example("kms.KmsService.DestroyKey", "destroy-key", "Erases a key in 30 days.", {
    keyId,
    afterSeconds: 2_592_000,
  }),
  example("kms.KmsService.RestoreKey", "restore-key", "Cancels the destruction.", { keyId }),
  example("kms.KmsService.GetImportParameters", "get-import-parameters", "Requests a key to wrap with."),
  example("kms.KmsService.ImportKey", "import-key", "Imports a key that was created elsewhere.", {
    importToken: answered("get-import-parameters", "importToken", someId("import")),
    wrappedKey: answered(wrappedKey, "wrappedKey", someBytes),
    algorithm: "ML-DSA-65",
    name: "imported/signer",
  }),
  example("kms.KmsService.GetHealth", "get-kms-health", "Checks the health of the service."),
];
