/**
 * Creates PKCS#10 certificate signing requests (CSRs, RFC 2986) for keys that sign elsewhere. pkijs writes
 * the ASN.1.
 */
import { BitString } from "asn1js";
import { AlgorithmIdentifier, Attribute, CertificationRequest, Extensions, PublicKeyInfo } from "pkijs";
import type { SignatureAlgorithm } from "./algorithms.ts";
import type { AlternativeName } from "./alternative-names.ts";
import { createExtension, findSignatureKind } from "./certificate-parts.ts";
import type { DistinguishedName } from "./distinguished-name.ts";
import { encodePublicKeyDer } from "./key-encoding.ts";
import { encodeAlternativeNames, encodeDistinguishedName } from "./name-encoding.ts";

/** The attribute that contains extensions: extensionRequest (RFC 2985, section 5.4.2). */
export const extensionRequestOid = "1.2.840.113549.1.9.14";

/** The names to request, and the key. */
export interface CertificateRequestInput {
  readonly subject: DistinguishedName;
  readonly alternativeNames: readonly AlternativeName[];
  readonly algorithm: SignatureAlgorithm;
  /** Raw, `publicKeyBytes` long. */
  readonly publicKey: Uint8Array;
}

/**
 * Creates a CSR. It requests names only: the CA decides which uses the certificate allows.
 *
 * @param sign signs a message with the secret key, pure and without context; ECDSA over SHA-256, in DER
 * @returns DER
 */
export async function createCertificateRequest(
  { subject, alternativeNames, algorithm, publicKey }: CertificateRequestInput,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const request = new CertificationRequest({
    subject: encodeDistinguishedName(subject),
    subjectPublicKeyInfo: PublicKeyInfo.fromBER(encodePublicKeyDer(algorithm, publicKey)),
    // Empty rather than absent: RFC 2986, section 4.1, has no OPTIONAL.
    attributes: createAttributes(subject, alternativeNames),
    signatureAlgorithm: new AlgorithmIdentifier({ algorithmId: findSignatureKind(algorithm).oid }),
  });
  const [information] = request.toSchema(true).valueBlock.value;
  if (information === undefined) throw new Error("pkijs wrote a request without its first part");
  request.tbsView = new Uint8Array(information.toBER());
  request.signatureValue = new BitString({ valueHex: await sign(request.tbsView) });
  return new Uint8Array(request.toSchema().toBER());
}

function createAttributes(subject: DistinguishedName, names: readonly AlternativeName[]): Attribute[] {
  if (names.length === 0) return [];
  // RFC 5280, section 4.2.1.6: critical if there is no other name.
  const isOnlyName = subject.length === 0;
  const extension = createExtension("subjectAltName", isOnlyName, encodeAlternativeNames(names).toSchema());
  const extensions = new Extensions({ extensions: [extension] });
  return [new Attribute({ type: extensionRequestOid, values: [extensions.toSchema()] })];
}
