/**
 * Checks the head of a request before any other work: size, host, origin and media type.
 *
 * The host and origin checks protect users who run the server on their own machine. A third-party page can
 * make their browser send requests to the server, by name (DNS rebinding) or across sites (CSRF).
 */
import type { IncomingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { excerpt } from "../errors/shorten.ts";
import { metadataTooLarge, refuse } from "../errors.ts";
import { announcesBody, type Exchange } from "./exchange.ts";
import { countRawBytes, maxFields } from "./metadata.ts";

export interface HeadPolicy {
  /** Maximum bytes of all names and values. */
  readonly maxMetadataBytes: number;
  /** Returns whether a request may name a host; undefined to accept any. */
  readonly isHostAllowed: ((hostname: string) => boolean) | undefined;
  /** Other origins whose pages may call, such as https://console.example.com (CORS). */
  readonly corsOrigins: ReadonlySet<string>;
}

/** The part of a request that is checked. */
type RequestHead = Pick<Exchange, "method" | "target" | "headers" | "rawHeaders" | "httpVersion" | "hasBody">;

/**
 * Returns what is wrong with a request head; undefined if it is valid.
 *
 * @param isCall whether the target is a call, not a page. A cross-site link may open a page but not make a call.
 */
export type FindHeadFault = (head: RequestHead, isCall: boolean) => ConnectError | undefined;

/**
 * Maximum characters of a host: a name of 253 and its trailing dot (RFC 1035, section 2.3.4), and a port.
 * Parsing time grows with the square of the length, because names may contain characters of any script (UTS
 * #46).
 */
const maxHostCharacters = 260;

/** Maximum characters of an origin: a scheme and a host. */
const maxOriginCharacters = maxHostCharacters + 40;

/** Maximum hosts to cache. Clients of one server name few. */
const maxHosts = 1000;

export function createHeadCheck(policy: HeadPolicy): FindHeadFault {
  // Parsing a host takes longer than all other checks.
  const hosts = new LRUCache<string, Host>({ max: maxHosts });
  const readHost = (head: RequestHead): Host | undefined => {
    const text = findAuthority(head);
    if (text === undefined) return undefined;
    const known = hosts.get(text);
    if (known !== undefined) return known;
    const url = parseAuthority(text);
    if (url === undefined) return undefined;
    const hostname = url.hostname.replace(/\.$/, "");
    const host = { url, hostname, isAllowed: policy.isHostAllowed?.(hostname) !== false };
    hosts.set(text, host);
    return host;
  };
  return (head, isCall) => {
    const { headers } = head;
    const metadataBytes = countMetadataBytes(head);
    if (metadataBytes > policy.maxMetadataBytes)
      return metadataTooLarge(metadataBytes, policy.maxMetadataBytes);
    const fields = head.rawHeaders.length / 2;
    if (fields > maxFields) return tooManyFields(fields);
    const repeated = findRepeated(head.rawHeaders);
    if (repeated !== undefined && repeated !== "host")
      return refuse("HTTP_INVALID", `the header ${repeated} occurs twice; send it once`);
    const coding = headers["transfer-encoding"];
    if (coding !== undefined && !/^chunked$/i.test(coding)) return codingUnknown(coding);
    const host = repeated === "host" ? undefined : readHost(head);
    if (host === undefined) {
      return refuse(
        "HTTP_INVALID",
        "the request must name one valid host, in one Host header or in :authority",
      );
    }
    if (!host.isAllowed) return hostNotAllowed(host.hostname);
    if (isCrossSite(head, isCall, host.url, policy.corsOrigins)) return crossSite(headers);
    // The transcoder refuses a QUERY without a media type, with 400 (RFC 10008, section 2.1).
    const needsType = announcesContent(head) && head.method !== "QUERY";
    return needsType && !headers["content-type"] ? mediaTypeMissing() : undefined;
  };
}

/** HTTP/1.1 sends the target outside the headers, HTTP/2 in a pseudo-header. */
function countMetadataBytes({ rawHeaders, httpVersion, target }: RequestHead): number {
  return countRawBytes(rawHeaders) + (httpVersion === "1.1" ? target.length : 0);
}

/** In HTTP/2, only the first byte of a body shows that the request has one. */
function announcesContent({ httpVersion, hasBody, headers }: RequestHead): boolean {
  return httpVersion === "1.1" ? hasBody : announcesBody(headers);
}

/** The host that a request names. */
interface Host {
  readonly url: URL;
  readonly hostname: string;
  readonly isAllowed: boolean;
}

/** Refuses a body without a media type, because browsers send such bodies for pages of any site. */
export function mediaTypeMissing(): ConnectError {
  return refuse(
    "MEDIA_TYPE_UNSUPPORTED",
    "a request with a body needs a content-type, such as application/json, or application/octet-stream for a file",
    { contentType: "" },
  );
}

/**
 * RFC 9112, section 6.1: 501 for an unsupported transfer coding. Node would remove the chunks and pass on the
 * rest as the body.
 */
function codingUnknown(coding: string): ConnectError {
  return refuse(
    "NOT_IMPLEMENTED",
    `the transfer coding "${excerpt(coding)}" is not supported; send "chunked" alone, and compress with content-encoding`,
  );
}

function tooManyFields(fields: number): ConnectError {
  return refuse("METADATA_TOO_LARGE", `the request has ${fields} header fields; the limit is ${maxFields}`, {
    fields: String(fields),
    maxFields: String(maxFields),
  });
}

/** Headers that a proxy in front may read differently if they occur twice, by the lengths of their names. */
const singleHeaders = new Map(
  ["host", "content-type", "authorization", "idempotency-key"].map((name) => [name.length, name]),
);

/** Finds a header that occurs more than once but must not. */
function findRepeated(rawHeaders: readonly string[]): string | undefined {
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const text = rawHeaders[i] ?? "";
    const name = singleHeaders.get(text.length);
    if (name === undefined || text.toLowerCase() !== name) continue;
    const bit = 1 << name.length;
    if ((seen & bit) !== 0) return name;
    seen |= bit;
  }
  return undefined;
}

/**
 * RFC 9112, section 3.2, and RFC 9113, section 8.3.1: a request names exactly one host. The host of an
 * absolute target replaces the header (RFC 9112, section 3.2.2).
 */
function findAuthority({ headers, target, httpVersion }: RequestHead): string | undefined {
  const targetHost = httpVersion === "1.1" ? readTargetHost(target) : undefined;
  if (targetHost !== undefined) return targetHost;
  const authority = headers[":authority"]?.toString();
  if (authority !== undefined && headers.host !== undefined && headers.host !== authority) return undefined;
  return authority ?? headers.host;
}

/** Returns the host of an absolute target; undefined for a path or "*", "" for anything else. */
function readTargetHost(target: string): string | undefined {
  if (target.startsWith("/") || target === "*") return undefined;
  return /^https?:\/\/([^/?#]*)/i.exec(target)?.[1] ?? "";
}

function parseAuthority(text: string): URL | undefined {
  if (text.length > maxHostCharacters) return undefined;
  const isAuthority = /^[^/?#@\\]+$/.test(text) && URL.canParse(`http://${text}`);
  return isAuthority ? new URL(`http://${text}`) : undefined;
}

function hostNotAllowed(hostname: string): ConnectError {
  return refuse(
    "HOST_NOT_ALLOWED",
    `this server does not serve the host "${hostname}"; use localhost or 127.0.0.1, or start it with --allowed-hosts`,
    { host: hostname },
  );
}

function crossSite({ origin }: IncomingHttpHeaders): ConnectError {
  const source = origin === undefined || origin === "null" ? "another site" : origin;
  return refuse(
    "CROSS_SITE_REFUSED",
    `pages of ${source} may not call this server; start it with --cors-origins to allow an origin`,
    origin === undefined ? {} : { origin },
  );
}

/**
 * Returns whether a browser sends the request for a page of another origin (Fetch Metadata, W3C; RFC 6454).
 *
 * Sec-Fetch-Site decides if present. Older browsers send Origin with every request that may change state.
 * Other programs send neither.
 */
function isCrossSite(
  head: RequestHead,
  isCall: boolean,
  url: URL,
  corsOrigins: ReadonlySet<string>,
): boolean {
  const { headers } = head;
  const { origin, "sec-fetch-site": site } = headers;
  if (origin !== undefined && corsOrigins.has(origin)) return false;
  if (site === undefined) return origin !== undefined && !isOwnOrigin(origin, url);
  if (site === "same-origin" || site === "none") return false;
  return !isNavigation(head) || isCall;
}

function isOwnOrigin(origin: string, url: URL): boolean {
  if (origin.length > maxOriginCharacters || !URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  // Parsed with the scheme of the page, so that either side may omit the default port.
  return URL.canParse(`${protocol}//${url.host}`) && new URL(`${protocol}//${url.host}`).host === host;
}

function isNavigation({ method, headers }: RequestHead): boolean {
  return (
    (method === "GET" || method === "HEAD") &&
    headers["sec-fetch-mode"] === "navigate" &&
    headers["sec-fetch-dest"] === "document"
  );
}

/**
 * Creates the host check for a server without access control. It accepts loopback names, the address that the
 * server listens on, and names that the operator adds. Any other name that resolves to this machine may
 * belong to a page that rebinds it (DNS rebinding).
 *
 * @param allowed more host names; a leading dot stands for all subdomains, "*" for any name
 * @param listening the address of --host. If it is not loopback, IP addresses are accepted, because DNS
 *   rebinding needs a name
 */
export function createHostCheck(
  allowed: readonly string[],
  listening: string,
): ((hostname: string) => boolean) | undefined {
  if (allowed.includes("*")) return undefined;
  const names = new Set(allowed.map((name) => name.toLowerCase()));
  const suffixes = [...names].filter((name) => name.startsWith("."));
  const isOpen = !isLoopbackName(listening) && listening !== "::1";
  return (hostname) =>
    isLoopbackName(hostname) ||
    names.has(hostname) ||
    hostname === listening.toLowerCase() ||
    suffixes.some((suffix) => hostname.endsWith(suffix)) ||
    (isOpen && /^(\[.*\]|\d+(\.\d+){3})$/.test(hostname));
}

function isLoopbackName(hostname: string): boolean {
  return /^((.+\.)?localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
