/** Certificate requests for stored keys. */
import { createHash } from "node:crypto";
import { isSignatureAlgorithm } from "../../crypto/algorithms.ts";
import {
  type AlternativeName,
  type AlternativeNameKind,
  readAlternativeName,
} from "../../crypto/alternative-names.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { type DistinguishedName, parseDistinguishedName } from "../../crypto/distinguished-name.ts";
import { encodePem } from "../../crypto/pem.ts";
import { refuseField } from "../../errors.ts";
import type { KeyInput } from "./attempt.ts";
import { type SignDeps, signing } from "./sign.ts";
import { type UsedKey, useKey } from "./use-key.ts";

/** The key, and the names that the request asks for. The proto limits their number and length. */
export interface CreateCsrInput extends KeyInput {
  /** RFC 4514; empty for none. */
  readonly subject: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly emails: readonly string[];
  readonly uris: readonly string[];
}

/** A certificate request, and the key that signed it. */
export interface CreatedCsr extends UsedKey {
  /** DER. */
  readonly csr: Uint8Array;
  readonly csrPem: string;
  /** Raw. */
  readonly publicKey: Uint8Array;
  readonly publicKeyPem: string;
}

/**
 * Creates a certificate request (RFC 2986) and signs it with its key. A caller who may use the key gains nothing that
 * `sign` would not give: a request is data to sign. Therefore states, grants and the audit log treat it as the operation
 * SIGN.
 *
 * @throws as useKey does; FIELD_INVALID for a name that is not well-formed
 */
export async function createCsr(deps: SignDeps, { subject, ...input }: CreateCsrInput): Promise<CreatedCsr> {
  const names = {
    subject: readField("subject", () => parseDistinguishedName(subject)),
    alternativeNames: readAlternativeNames(input),
  };
  return useKey(deps, input, signing, async (key) => {
    const secretKey = await key.secretKey();
    const publicKey = key.publicKey();
    const raw = publicKey.exportRaw();
    const { algorithm } = secretKey;
    if (!isSignatureAlgorithm(algorithm)) throw new Error(`useKey has admitted a key of ${algorithm}`);
    // Loaded here, because it takes 40 ms and few servers need it.
    const { createCertificateRequest } = await import("../../crypto/certificate-request.ts");
    const csr = await createCertificateRequest({ ...names, algorithm, publicKey: raw }, (message) =>
      deps.provider.sign(secretKey, message),
    );
    const result = {
      csr,
      csrPem: encodePem("CERTIFICATE REQUEST", csr),
      publicKey: raw,
      publicKeyPem: publicKey.toPem(),
    };
    const digest = createHash("sha256").update(csr).digest("hex");
    return { result, details: [`input=csr, sha256=${digest}`] };
  });
}

/** The fields with alternative names, and the kind of their names. */
const nameFields = {
  dnsNames: "dns",
  ipAddresses: "ip",
  emails: "email",
  uris: "uri",
} as const satisfies Record<string, AlternativeNameKind>;

function readAlternativeNames(
  input: Pick<CreateCsrInput, keyof typeof nameFields>,
): readonly AlternativeName[] {
  const fields = Object.keys(nameFields) as (keyof typeof nameFields)[];
  return fields.flatMap((field) =>
    input[field].map((text, i) =>
      readField(`${field}[${i}]`, () => readAlternativeName(nameFields[field], text)),
    ),
  );
}

function readField<T extends AlternativeName | DistinguishedName>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CryptoError ? refuseField(field, error.message) : error;
  }
}
