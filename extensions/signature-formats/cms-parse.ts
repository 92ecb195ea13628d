/**
 * Parses CMS SignedData (RFC 5652), detached or with content, signed with ML-DSA (RFC 9882) or SLH-DSA (RFC
 * 9814). pkijs parses the ASN.1.
 */
import { fromBER, Sequence } from "asn1js";
import { ContentInfo, SignedData } from "pkijs";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import { decodePem, isPem } from "../../src/crypto/pem.ts";
import { requireDer } from "../../src/crypto/strict-der.ts";
import { oids } from "./cms-algorithms.ts";
import { type CmsSignature, readSignature } from "./cms-signature.ts";
import { FormatError, requireSize } from "./format-error.ts";
import { maxEmbeddedBytes, maxSignatures } from "./limits.ts";

/** A parsed message, not yet verified. */
export interface CmsMessage {
  /** The ML-DSA and SLH-DSA signatures; at least one. */
  readonly signatures: readonly CmsSignature[];
  /** Undefined if the message is detached. */
  readonly content: Uint8Array | undefined;
}

/** Maximum message size in DER: content, several signatures and certificate chains, even with SLH-DSA. */
const maxCmsBytes = maxEmbeddedBytes + 1024 * 1024;
/** Maximum message size in PEM, in characters: base64 with line endings. */
const maxCmsPemCharacters = Math.ceil(maxCmsBytes * 1.4);
/**
 * Certificates are about 12 levels deep, with some 100 elements each. asn1js would otherwise also parse the
 * content, and count its elements, if it is DER itself.
 */
const parseLimits = { maxDepth: 32, maxNodes: 10_000, maxContentLength: maxCmsBytes, parseEmbedded: false };
/** Versions of SignedData (RFC 5652, section 5.1). */
const versions = [1, 3, 4, 5];

/**
 * Parses a message in PEM (label CMS or PKCS7) or DER.
 *
 * @throws FormatError
 */
export function parseCms(bytes: Uint8Array): CmsMessage {
  const der = decodeMessage(bytes);
  requireSize("the CMS message", der.length, maxCmsBytes);
  checkDer(der);
  const { digestAlgorithms, signerInfos, encapContentInfo } = explain(
    "the message is not CMS SignedData",
    () => readSignedData(der),
  );
  if (encapContentInfo.eContentType !== oids.data)
    throw new FormatError(
      `the content type is ${encapContentInfo.eContentType}; expected data (${oids.data})`,
    );
  if (signerInfos.length === 0 || signerInfos.length > maxSignatures)
    throw new FormatError(
      `the CMS message has ${signerInfos.length} signers; expected 1 to ${maxSignatures}`,
    );
  const signatures = signerInfos.flatMap((info) =>
    explain("a SignerInfo is malformed", () => readSignature(info) ?? []),
  );
  // Verifiers may refuse this (RFC 5652, section 5.1): a streaming reader picks its digests from this list.
  const listed = new Set(digestAlgorithms.map(({ algorithmId }) => algorithmId));
  for (const { digest } of signatures)
    if (!listed.has(digest.oid))
      throw new FormatError(
        `a signature uses the digest ${digest.oid}, which is missing from digestAlgorithms`,
      );
  if (signatures.length === 0) throw new FormatError("the CMS message has no ML-DSA or SLH-DSA signature");
  return { signatures, content: encapContentInfo.eContent?.valueBlock.valueHexView };
}

function decodeMessage(bytes: Uint8Array): Uint8Array {
  if (!isPem(bytes)) return bytes;
  try {
    return decodePem(["CMS", "PKCS7"], new TextDecoder().decode(bytes), maxCmsPemCharacters);
  } catch (error) {
    throw error instanceof CryptoError ? new FormatError(`the CMS message: ${error.message}`) : error;
  }
}

function readSignedData(der: Uint8Array): SignedData {
  const { result, offset } = fromBER(der, parseLimits);
  if (offset !== der.length) throw new FormatError("the CMS message is not a single ASN.1 element");
  const { contentType, content } = new ContentInfo({ schema: result });
  if (contentType !== oids.signedData)
    throw new FormatError(`the CMS message has the type ${contentType}; expected SignedData`);
  // After the first three elements, only the last one, signerInfos, has no tag of its own. pkijs ignores
  // unknown elements.
  const elements = content instanceof Sequence ? content.valueBlock.value.slice(3) : [];
  const untagged = elements.filter(({ idBlock }) => idBlock.tagClass === 1);
  if (untagged.length !== 1 || untagged[0] !== elements.at(-1))
    throw new FormatError("SignedData has elements that RFC 5652 does not define");
  const signedData = new SignedData({ schema: content });
  if (versions.includes(signedData.version)) return signedData;
  throw new FormatError(`SignedData has version ${signedData.version}; expected ${versions.join(", ")}`);
}

function checkDer(der: Uint8Array): void {
  try {
    requireDer("the CMS message", der);
  } catch (error) {
    if (!(error instanceof CryptoError)) throw error;
    throw new FormatError(`${error.message}; convert it, for example with openssl cms -cmsout -outform DER`);
  }
}

/** Runs a parser and replaces its error messages, which would not help. */
function explain<T>(problem: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof FormatError) throw error;
    throw new FormatError(problem);
  }
}
