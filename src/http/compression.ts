/** Compresses the answers of REST calls for clients that ask for it. */
import type { DescMessage } from "@bufbuild/protobuf";
import { chooseCoding, contentCodings, encodeContent } from "./content-coding.ts";

/**
 * Bytes of the smallest answer that is compressed. Below it, the headers and the work cost more than the coding
 * saves: an answer with one signature shrinks by a quarter, and one with one identifier not at all.
 */
const minBytes = 1024;

/** Media types that compress well. */
const textTypes = /^(text\/|application\/([\w.-]+\+)?(json|xml|yaml|javascript)\b)/i;

/** A body, and whether it is compressed. */
export interface CodedBody {
  readonly body: Uint8Array;
  readonly isCoded: boolean;
}

/**
 * Compresses a body if its client accepts it and if it shrinks. Sets Content-Encoding and Vary.
 *
 * An answer that holds a secret is not compressed. The size of compressed text reveals how much of the caller's text
 * equals the secret next to it (BREACH, CVE-2013-3587).
 *
 * @param output the type of the answer.
 * @param headers of the answer; changed in place.
 */
export async function encodeBody(
  output: DescMessage,
  acceptEncoding: string | null,
  headers: Headers,
  body: Uint8Array,
): Promise<CodedBody> {
  const plain = { body, isCoded: false };
  if (headers.has("content-encoding") || holdsSecret(output)) return plain;
  if (!textTypes.test(headers.get("content-type") ?? "")) return plain;
  headers.append("vary", "accept-encoding");
  const { coding, isIdentityAccepted } = chooseCoding(acceptEncoding, contentCodings);
  if (coding === undefined || (body.length < minBytes && isIdentityAccepted)) return plain;
  const coded = await encodeContent(coding, body);
  if (coded.length >= body.length && isIdentityAccepted) return plain;
  headers.set("content-encoding", coding);
  return { body: coded, isCoded: true };
}

const known = new WeakMap<DescMessage, boolean>();

/** Tells whether a message, or one within it, has a field that its proto marks with debug_redact. */
export function holdsSecret(desc: DescMessage): boolean {
  let holds = known.get(desc);
  if (holds !== undefined) return holds;
  // A recursive message adds nothing to the result.
  known.set(desc, false);
  holds = desc.fields.some(
    ({ proto, message }) =>
      proto.options?.debugRedact === true || (message !== undefined && holdsSecret(message)),
  );
  known.set(desc, holds);
  return holds;
}
