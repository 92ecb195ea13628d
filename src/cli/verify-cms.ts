/** Verifies a CMS message, detached or with its content. */
import { isNamed, readCertificates } from "../formats/certificate.ts";
import { parseCms } from "../formats/cms-parse.ts";
import type { CmsSignature } from "../formats/cms-signature.ts";
import { oneOf } from "./client.ts";
import { usageError } from "./exit-codes.ts";
import { readText } from "./files.ts";
import {
  differs,
  isContent,
  isSignatureOf,
  requireContent,
  type Verdict,
  type VerifyingJob,
} from "./format-verdict.ts";

/**
 * Verifies the signature of the trusted key among those of a message. With --certificate, the message must also name that
 * certificate.
 *
 * @throws CliError, FormatError
 */
export async function verifyCms({ input, document, content, ...key }: VerifyingJob): Promise<Verdict> {
  const message = parseCms(document);
  const payload = message.content;
  const signatures = message.signatures.filter(({ algorithm }) => algorithm === key.publicKey.algorithm);
  const [first] = signatures;
  if (first === undefined) throw usageError(`the CMS message has no signature of ${key.publicKey.algorithm}`);
  const file = input.options.text("certificate");
  const certificate = file === undefined ? undefined : readCertificates(readText(file), file)[0];
  const verified: CmsSignature[] = [];
  for (const candidate of signatures) {
    if (certificate !== undefined && !isNamed(certificate, candidate.signer)) continue;
    if (await isSignatureOf(key, candidate.signature, oneOf(candidate.signedAttributes)))
      verified.push(candidate);
  }
  if (verified.length === 0) return { valid: false };
  if (payload !== undefined && content !== undefined && !(await isContent(content, payload)))
    return { valid: false, reason: differs };
  const hashes = verified.map(({ digest }) => digest.start());
  const signed = payload === undefined ? requireContent(content) : oneOf(payload);
  for await (const chunk of signed) for (const hash of hashes) hash.update(chunk);
  const digests = hashes.map((hash) => hash.digest());
  const found = verified.find(({ messageDigest }, i) => digests[i]?.equals(messageDigest));
  if (found === undefined) return { valid: false, reason: differs };
  const { signingTime } = found;
  const claims = signingTime === undefined ? {} : { signingTime: signingTime.toISOString() };
  return { valid: true, payload, claims };
}
