/** Compresses REST responses for clients that accept it. */
import type { DescMessage } from "@bufbuild/protobuf";
import { chooseCoding, contentCodings, encodeContent } from "./content-coding.ts";

/**
 * Minimum size of a compressed response. For smaller ones, the headers and the work cost more than the coding
 * saves: a response with one signature shrinks by a quarter, and one with one ID not at all.
 */
const minBytes = 1024;

/** Media types that compress well. */
const textTypes = /^(text\/|application\/([\w.-]+\+)?(json|xml|yaml|javascript)\b)/i;

export interface CodedBody {
  readonly body: Uint8Array;
  readonly isCoded: boolean;
}

/**
 * Compresses a body if its client accepts it and it gets smaller. Sets Content-Encoding and Vary.
 *
 * A response that holds a secret is not compressed: the size of compressed text reveals how much of the
 * caller's text equals the secret next to it (BREACH, CVE-2013-3587).
 *
 * @param output the type of the answer
 * @param headers the response headers; changed in place
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

/** Returns whether a message, or one nested in it, has a field that its proto marks with debug_redact. */
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
