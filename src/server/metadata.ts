/** Measures request metadata and converts response metadata to Node's form. */
import { CallHeaders } from "../calls/call-headers.ts";

/** Headers up to this multiple of the limit are still read, so that the sender gets an answer. */
export const headroom = 8;

/** Maximum fields of a request, including HTTP/2 pseudo-headers. Clients send ten to thirty. */
export const maxFields = 200;

/** Fields that HTTP/2 still reads, so that a sender slightly over the limit gets an answer. */
export const maxReadFields = 256;

/**
 * Counts the bytes of a list of alternating names and values as Envoy does, so that both accept the same
 * requests. Includes HTTP/2 pseudo-headers.
 */
export function countRawBytes(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/** Returns headers in the form that Node sends. */
export function toNodeHeaders(headers: Headers): Readonly<Record<string, string | string[] | undefined>> {
  return headers instanceof CallHeaders ? headers.toNode() : copyOf(headers);
}

function copyOf(headers: Headers): Record<string, string | string[]> {
  const copy: Record<string, string | string[]> = {};
  headers.forEach((value, name) => {
    if (name !== "set-cookie") copy[name] = value;
  });
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) copy["set-cookie"] = cookies;
  return copy;
}
