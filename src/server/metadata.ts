/** Measures the metadata of requests, and converts that of answers to the form of Node. */
import type { IncomingHttpHeaders } from "node:http";
import { CallHeaders } from "../protocol/call-headers.ts";

/** Headers up to this multiple of the limit are still read, so that their sender gets an answer. */
export const headroom = 8;

/**
 * Counts the bytes of all names and values, as Envoy does, so that both accept the same requests. Pseudo-headers of
 * HTTP/2 count too.
 */
export function countMetadataBytes(headers: Readonly<IncomingHttpHeaders>): number {
  let bytes = 0;
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    if (typeof value === "string") bytes += name.length + value.length;
    else for (const item of value) bytes += name.length + item.length;
  }
  return bytes;
}

/** Counts the same bytes in a list of names and values in turn. */
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
