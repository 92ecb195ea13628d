/** Verifies a CMS message, detached or with embedded content. */

import { oneOf } from "../../src/cli/connection/api-client.ts";
import { readText } from "../../src/cli/files/read.ts";
import { findSigner } from "../../src/cli/signing/local.ts";
import type { PublicKey } from "../../src/crypto/provider.ts";
import { isNamed, readCertificates } from "./certificate.ts";
import { parseCms } from "./cms-parse.ts";
import type { CmsSignature } from "./cms-signature.ts";
import { differs, requireContent, selectKeys, type Verdict, type VerifyingJob } from "./verdict.ts";

/**
 * Verifies a trusted key's signature in a message. With --certificate, the message must also name that
 * certificate.
 *
 * @throws CliError, FormatError
 */
export async function verifyCms({ input, document, content, ...keys }: VerifyingJob): Promise<Verdict> {
  const message = parseCms(document);
  const payload = message.content;
  const { reason } = selectKeys(
    keys,
    message.signatures.map(({ algorithm }) => algorithm),
  );
  if (reason !== undefined) return { signer: undefined, reason };
  const file = input.options.text("certificate");
  const certificate = file === undefined ? undefined : readCertificates(readText(file), file)[0];
  const verified: (CmsSignature & { readonly key: PublicKey })[] = [];
  for (const candidate of message.signatures) {
    if (certificate !== undefined && !isNamed(certificate, candidate.signer)) continue;
    const chosen = selectKeys(keys, [candidate.algorithm]);
    const key = await findSigner(chosen.keys, candidate.signature, oneOf(candidate.signedAttributes));
    if (key !== undefined) verified.push({ ...candidate, key });
  }
  if (verified.length === 0) return { signer: undefined };
  const hashes = verified.map(({ digest }) => digest.start());
  const signed = payload === undefined ? requireContent(content) : oneOf(payload);
  for await (const chunk of signed) for (const hash of hashes) hash.update(chunk);
  const digests = hashes.map((hash) => hash.digest());
  const found = verified.find(({ messageDigest }, i) => digests[i]?.equals(messageDigest));
  if (found === undefined) return { signer: undefined, reason: differs };
  const { signingTime } = found;
  const claims = signingTime === undefined ? {} : { signingTime: signingTime.toISOString() };
  return { signer: found.key, payload, claims };
}
