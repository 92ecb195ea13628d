/** Verifies a file with a detached CMS signature. */
import { isNamed, readCertificates } from "../formats/certificate.ts";
import { parseCms } from "../formats/cms-parse.ts";
import type { CmsSignature } from "../formats/cms-signature.ts";
import { oneOf } from "./client.ts";
import { usageError } from "./exit-codes.ts";
import { readText } from "./files.ts";
import { differs, isSignatureOf, requireContent, type Verdict, type VerifyingJob } from "./format-verdict.ts";

/**
 * Verifies the signature of the trusted key among those of a message. With --certificate, the message must also name that
 * certificate.
 *
 * @throws CliError, FormatError
 */
export async function verifyCms({ input, document, content, ...key }: VerifyingJob): Promise<Verdict> {
  const signatures = parseCms(document).filter(({ algorithm }) => algorithm === key.publicKey.algorithm);
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
  const hashes = verified.map(({ digest }) => digest.start());
  for await (const chunk of requireContent(content)) for (const hash of hashes) hash.update(chunk);
  const digests = hashes.map((hash) => hash.digest());
  const found = verified.find(({ messageDigest }, i) => digests[i]?.equals(messageDigest));
  if (found === undefined) return { valid: false, reason: differs };
  const { signingTime } = found;
  return { valid: true, claims: signingTime === undefined ? {} : { signingTime: signingTime.toISOString() } };
}
