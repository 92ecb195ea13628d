/** `qsp verify --format`: verifies a file in a standard format. Its input is untrusted. */

import { oneOf } from "../../src/cli/connection/api-client.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import { readWhole } from "../../src/cli/files/read.ts";
import { readContent } from "../../src/cli/signing/keys.ts";
import { describeSigner, findSigner, type VerifyingKeys } from "../../src/cli/signing/local.ts";
import type { VerbInput } from "../../src/cli/verb.ts";
import type { FormatName } from "./format-options.ts";
import { maxDocumentBytes } from "./limits.ts";
import {
  differs,
  gatherContent,
  isContent,
  requireContent,
  selectKeys,
  type Verdict,
  type VerifyingJob,
} from "./verdict.ts";

const verifiers: Readonly<Record<FormatName, (job: VerifyingJob) => Promise<Verdict>>> = {
  dsse: verifyDsse,
  cms: async (job) => (await import("./verify-cms.ts")).verifyCms(job),
  jws: verifyJws,
  cose: verifyCose,
};

/**
 * Verifies a document, and writes its content if it is valid.
 *
 * @returns the exit code
 */
export async function verifyInFormat(
  input: VerbInput,
  format: FormatName,
  keys: VerifyingKeys,
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
  const verdict = await verifiers[format]({ ...keys, input, document, content });
  const { payload } = verdict;
  const isOther = content !== undefined && payload !== undefined && !(await isContent(content, payload));
  const { signer, reason } = isOther ? { signer: undefined, reason: differs } : verdict;
  const valid = signer !== undefined;
  if (valid && payload !== undefined) input.files.write("out", payload);
  const key = describeSigner(keys, signer);
  // Nothing is known about an invalid document.
  const claims = valid ? (verdict.claims ?? {}) : {};
  const described = [key.text, ...Object.values(claims), ...(reason === undefined ? [] : [reason])].join(
    "; ",
  );
  return output.report(
    { valid, format, ...key.fields, ...claims, ...(reason !== undefined && { reason }) },
    `${path}: the signature is ${valid ? "valid" : "NOT valid"} (${described})`,
    valid,
  );
}

async function verifyDsse({ input, document, provider, publicKeys }: VerifyingJob): Promise<Verdict> {
  const { encodePae, parseDsse } = await import("./dsse.ts");
  const { payloadType, payload, signatures } = parseDsse(document);
  const claims = { payloadType };
  const expected = input.options.text("payload-type");
  if (expected !== undefined && expected !== payloadType)
    return { signer: undefined, reason: `the payload type is not ${expected}` };
  const message = encodePae(payloadType, payload);
  for (const { signature } of signatures) {
    const signer = await findSigner({ provider, publicKeys }, signature, oneOf(message));
    if (signer !== undefined) return { signer, payload, claims };
  }
  return { signer: undefined, payload };
}

async function verifyJws({ document, content, ...given }: VerifyingJob): Promise<Verdict> {
  const { encodeJwsSigningInput, parseJws } = await import("./jws.ts");
  const { algorithm, protectedHeader, payload, signature } = parseJws(document);
  const { keys, ...why } = selectKeys(given, [algorithm]);
  const signed = payload === undefined ? requireContent(content) : oneOf(payload);
  const message = encodeJwsSigningInput(protectedHeader, signed);
  return { signer: await findSigner(keys, signature, message), payload, ...why };
}

async function verifyCose({ document, content, ...given }: VerifyingJob): Promise<Verdict> {
  const { encodeSigStructure, parseCose } = await import("./cose.ts");
  const { algorithm, protectedHeader, payload: embedded, signature } = parseCose(document);
  const { keys, ...why } = selectKeys(given, [algorithm]);
  const payload = embedded ?? (await gatherContent(requireContent(content)));
  const message = encodeSigStructure(protectedHeader, payload);
  return { signer: await findSigner(keys, signature, oneOf(message)), payload: embedded, ...why };
}
