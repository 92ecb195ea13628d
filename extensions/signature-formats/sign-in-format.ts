/** `qsp sign --format`: signs a file in a standard format. */

import { oneOf } from "../../src/cli/connection/api-client.ts";
import { exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { gather, readText } from "../../src/cli/files/read.ts";
import { parsePublicKey, withProvider } from "../../src/cli/keys/read-keys.ts";
import { bytes } from "../../src/cli/output/output.ts";
import { readContent } from "../../src/cli/signing/keys.ts";
import type { VerbInput } from "../../src/cli/verb.ts";
import { isSignatureAlgorithm } from "../../src/crypto/algorithms.ts";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import { encodePem } from "../../src/crypto/pem.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import type { CmsSigner } from "./cms-sign.ts";
import { type FormatName, readEncoding } from "./format-options.ts";
import { maxEmbeddedBytes } from "./limits.ts";
import { requireMlDsa } from "./require-ml-dsa.ts";
import { openSigner, type Signer } from "./signer.ts";

/** The content to sign and the key. */
interface SigningJob {
  readonly input: VerbInput;
  readonly provider: CryptoProvider;
  readonly signer: Signer;
  readonly content: AsyncIterable<Uint8Array>;
}

/** Signing function by format. Text documents end with a line break. */
const writers: Readonly<Record<FormatName, (job: SigningJob) => Promise<string | Uint8Array>>> = {
  dsse: signDsse,
  cms: signCms,
  jws: signJws,
  cose: signCose,
};

/**
 * Signs a file and writes the signature next to it.
 *
 * @returns the exit code
 */
export async function signInFormat(input: VerbInput, format: FormatName): Promise<number> {
  const { files, options, output } = input;
  return withProvider(async (provider) => {
    readEncoding(options, format);
    const signer = await openSigner(provider, input);
    const document = await writers[format]({ input, provider, signer, content: readContent(input) });
    const path = files.write("out", document);
    const text = typeof document === "string" ? document.trimEnd() : document.toBase64();
    const { publicKey, keyId } = signer;
    output.report(
      {
        ...{ format, algorithm: publicKey.algorithm, ...(keyId !== undefined && { keyId }) },
        ...(path === undefined ? { signature: text } : { file: path }),
      },
      path === undefined
        ? text
        : `${path}: ${bytes(Buffer.from(document).length)} of ${format} with ${publicKey.algorithm}`,
    );
    return exitCodes.done;
  });
}

async function signDsse({ input: { operands, options }, signer, content }: SigningJob): Promise<string> {
  const { checkPayloadType, encodePae, renderDsse } = await import("./dsse.ts");
  const payloadType = options.text("payload-type") ?? guessPayloadType(operands[0] ?? "");
  checkPayloadType(payloadType);
  const payload = await gatherContent(content, "a DSSE envelope");
  const signature = await signer.sign(oneOf(encodePae(payloadType, payload)));
  // Verifiers skip signatures whose keyid differs from the one they compute, and each library computes it
  // differently.
  return renderDsse({ payloadType, payload, signatures: [{ keyId: "", signature }] });
}

/** The file names that in-toto uses for statements (in-toto/attestation, spec/v1/envelope.md). */
function guessPayloadType(path: string): string {
  return /\.intoto(\.json)?$/.test(path) ? "application/vnd.in-toto+json" : "application/octet-stream";
}

async function signCms({ input: { options }, provider, signer, content }: SigningJob) {
  const { selectDigest } = await import("./cms-algorithms.ts");
  const { createCmsAttributes, renderCms } = await import("./cms-sign.ts");
  const { algorithm } = signer.publicKey;
  if (!isSignatureAlgorithm(algorithm)) throw new RangeError(`${algorithm} is not a signature algorithm`);
  // Checked before the content is read and a server-held key is used.
  const name = await nameSigner(provider, signer, options.text("certificate"));
  const hash = selectDigest(algorithm).start();
  for await (const chunk of content) hash.update(chunk);
  const attributes = createCmsAttributes(algorithm, hash.digest(), new Date());
  const signature = await signer.sign(oneOf(attributes.toBeSigned));
  const der = renderCms(attributes, signature, name);
  return readEncoding(options, "cms") === "der" ? der : encodePem("CMS", der);
}

/**
 * Returns the certificates in a file, which must belong to the signing key; without a file, the key.
 *
 * @throws CliError
 */
async function nameSigner(
  provider: CryptoProvider,
  { publicKey }: Signer,
  file: string | undefined,
): Promise<CmsSigner> {
  if (file === undefined) return { publicKey: publicKey.exportRaw() };
  const { readCertificates } = await import("./certificate.ts");
  const [certificate, ...others] = readCertificates(readText(file), file);
  const certified = parsePublicKey(provider, certificate.publicKeyPem, file);
  if (certified.toPem() !== publicKey.toPem())
    throw usageError(
      `${file} certifies a different key; the first certificate must belong to the signing key`,
    );
  return { certificates: [certificate.der, ...others] };
}

async function signJws({ input: { options }, signer, content }: SigningJob): Promise<string> {
  const { encodeJwsHeader, encodeJwsSigningInput, renderJws } = await import("./jws.ts");
  const algorithm = requireMlDsa(signer.publicKey.algorithm);
  const protectedHeader = encodeJwsHeader(algorithm, toPublicJwk(signer.publicKey).kid);
  const payload = options.flag("embed") ? await gatherContent(content, "a JWS with its content") : undefined;
  const message = encodeJwsSigningInput(protectedHeader, payload === undefined ? content : oneOf(payload));
  const signature = await signer.sign(message);
  return renderJws({ protectedHeader, payload, signature }, readEncoding(options, "jws"));
}

async function signCose({ input: { options }, signer, content }: SigningJob): Promise<Uint8Array> {
  const { computeCoseKeyId, encodeCoseHeader, encodeSigStructure, renderCose } = await import("./cose.ts");
  const protectedHeader = encodeCoseHeader(requireMlDsa(signer.publicKey.algorithm));
  const payload = await gatherContent(content, "a COSE message");
  const signature = await signer.sign(oneOf(encodeSigStructure(protectedHeader, payload)));
  const embedded = options.flag("embed") ? payload : undefined;
  return renderCose({ protectedHeader, payload: embedded, signature }, computeCoseKeyId(signer.publicKey));
}

function gatherContent(content: AsyncIterable<Uint8Array>, holder: string): Promise<Uint8Array> {
  return gather(
    content,
    maxEmbeddedBytes,
    `the content is larger than ${maxEmbeddedBytes} bytes, the limit for ${holder}; use cms or a detached jws, which have no limit`,
  );
}
