/** Measures a request's metadata and converts Node's headers to the Headers of calls. */
import type { IncomingHttpHeaders } from "node:http";

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

/** Copies Node's headers without the pseudo-headers of HTTP/2. */
export function toHeaders(nodeHeaders: Readonly<IncomingHttpHeaders>): Headers {
  const headers = new Headers();
  for (const name in nodeHeaders) {
    const value = nodeHeaders[name];
    if (value === undefined || name.startsWith(":")) continue;
    if (typeof value === "string") headers.set(name, value);
    else for (const item of value) headers.append(name, item);
  }
  return headers;
}

/** Copies Headers into the form that Node sends. */
export function toNodeHeaders(headers: Headers): Record<string, string | string[]> {
  const nodeHeaders: Record<string, string | string[]> = {};
  headers.forEach((value, name) => {
    if (name !== "set-cookie") nodeHeaders[name] = value;
  });
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) nodeHeaders["set-cookie"] = cookies;
  return nodeHeaders;
}
