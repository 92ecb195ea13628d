/** `qsp verify --format`: verifies a file in a standard format. What it reads may come from strangers. */
import { maxDocumentBytes } from "../formats/limits.ts";
import { oneOf } from "./client.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { readWhole } from "./files.ts";
import type { FormatName } from "./format-options.ts";
import {
  differs,
  gatherContent,
  isContent,
  isSignatureOf,
  requireAlgorithm,
  requireContent,
  type Verdict,
  type VerifyingJob,
  type VerifyingKey,
} from "./format-verdict.ts";
import { readContent } from "./signing.ts";
import type { VerbInput } from "./verb.ts";

const verifiers: Readonly<Record<FormatName, (job: VerifyingJob) => Promise<Verdict>>> = {
  dsse: verifyDsse,
  cms: async (job) => (await import("./verify-cms.ts")).verifyCms(job),
  jws: verifyJws,
  cose: verifyCose,
};

/** Verifies, and writes the content of a document that is valid. @returns the exit code */
export async function verifyInFormat(
  input: VerbInput,
  format: FormatName,
  key: VerifyingKey,
): Promise<number> {
  const {
    operands: [path = ""],
    options,
    output,
  } = input;
  const signatureFile = options.text("signature");
  const out = options.text("out");
  if (out !== undefined && signatureFile !== undefined)
    throw usageError("--out is for content inside FILE; leave out --signature");
  const document = await readWhole(signatureFile ?? path, maxDocumentBytes);
  const content = signatureFile === undefined ? undefined : readContent(input);
  const { valid, reason, payload, ...verdict } = await verifiers[format]({
    ...key,
    input,
    document,
    content,
  });
  if (valid && payload !== undefined) input.files.write("out", payload);
  const { algorithm } = key.publicKey;
  // Of a document that is not valid, nothing is known.
  const claims = valid ? (verdict.claims ?? {}) : {};
  const described = [algorithm, ...Object.values(claims), ...(reason === undefined ? [] : [reason])].join(
    "; ",
  );
  output.tell(
    { valid, format, algorithm, ...claims, ...(reason !== undefined && { reason }) },
    `${path}: the signature is ${valid ? "valid" : "NOT valid"} (${described})`,
  );
  return valid ? exitCodes.done : exitCodes.no;
}

async function verifyDsse({ input, document, content, ...key }: VerifyingJob): Promise<Verdict> {
  const { encodePae, parseDsse } = await import("../formats/dsse.ts");
  const { payloadType, payload, signatures } = parseDsse(document);
  const claims = { payloadType };
  const expected = input.options.text("payload-type");
  if (expected !== undefined && expected !== payloadType)
    return { valid: false, reason: `the payload type is not ${expected}` };
  if (content !== undefined && !(await isContent(content, payload))) return { valid: false, reason: differs };
  const message = encodePae(payloadType, payload);
  for (const { signature } of signatures)
    if (await isSignatureOf(key, signature, oneOf(message))) return { valid: true, payload, claims };
  return { valid: false };
}

async function verifyJws({ document, content, ...key }: VerifyingJob): Promise<Verdict> {
  const { encodeJwsSigningInput, parseJws } = await import("../formats/jws.ts");
  const { algorithm, protectedHeader, payload, signature } = parseJws(document);
  requireAlgorithm(key.publicKey, algorithm);
  if (payload === undefined) {
    const message = encodeJwsSigningInput(protectedHeader, requireContent(content));
    return { valid: await isSignatureOf(key, signature, message) };
  }
  if (content !== undefined && !(await isContent(content, payload))) return { valid: false, reason: differs };
  const message = encodeJwsSigningInput(protectedHeader, oneOf(payload));
  return { valid: await isSignatureOf(key, signature, message), payload };
}

async function verifyCose({ document, content, ...key }: VerifyingJob): Promise<Verdict> {
  const { encodeSigStructure, parseCose } = await import("../formats/cose.ts");
  const { algorithm, protectedHeader, payload: embedded, signature } = parseCose(document);
  requireAlgorithm(key.publicKey, algorithm);
  if (embedded !== undefined && content !== undefined && !(await isContent(content, embedded)))
    return { valid: false, reason: differs };
  const payload = embedded ?? (await gatherContent(requireContent(content)));
  const message = encodeSigStructure(protectedHeader, payload);
  return { valid: await isSignatureOf(key, signature, oneOf(message)), payload };
}
