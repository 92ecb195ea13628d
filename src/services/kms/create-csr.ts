/** Certificate signing requests (CSRs) for stored keys. */
import { createHash } from "node:crypto";
import type { CreateCsrRequest } from "#gen/kms/kms_service_pb.ts";
import { isSignatureAlgorithm } from "../../crypto/algorithms.ts";
import {
  type AlternativeName,
  type AlternativeNameKind,
  readAlternativeName,
} from "../../crypto/alternative-names.ts";
import { parseDistinguishedName } from "../../crypto/distinguished-name.ts";
import { encodePem } from "../../crypto/pem.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { readField } from "../fields.ts";
import { type SignDeps, signing } from "./sign.ts";
import { useKey } from "./use-key.ts";

/**
 * Creates a certificate signing request (RFC 2986), signed with its key.
 *
 * A CSR is data to sign, so a caller gains nothing that `sign` would not give. Therefore states, grants and
 * the audit log treat it as the operation SIGN.
 *
 * @throws the errors of `useKey`; FIELD_INVALID for a malformed name
 */
export async function createCsr(
  deps: SignDeps,
  { keyId: handle, subject, ...req }: CreateCsrRequest,
  caller: CallerInput,
) {
  const names = {
    subject: readField("subject", () => parseDistinguishedName(subject)),
    alternativeNames: readAlternativeNames(req),
  };
  return useKey(deps, { handle, ...caller }, signing, async (key) => {
    const secretKey = await key.secretKey();
    const publicKey = key.publicKey();
    const raw = publicKey.exportRaw();
    const { algorithm } = secretKey;
    if (!isSignatureAlgorithm(algorithm)) throw new Error(`useKey has admitted a key of ${algorithm}`);
    // Loaded here, because loading takes 40 ms and few servers need it.
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

/** Fields with alternative names, and the kind of each name. */
const nameFields = {
  dnsNames: "dns",
  ipAddresses: "ip",
  emails: "email",
  uris: "uri",
} as const satisfies Record<string, AlternativeNameKind>;

function readAlternativeNames(
  req: Pick<CreateCsrRequest, keyof typeof nameFields>,
): readonly AlternativeName[] {
  const fields = Object.keys(nameFields) as (keyof typeof nameFields)[];
  return fields.flatMap((field) =>
    req[field].map((text, i) =>
      readField(`${field}[${i}]`, () => readAlternativeName(nameFields[field], text)),
    ),
  );
}
