/**
 * Checks the head of a request before anything is done for it: its size, its host, its origin, its media type.
 *
 * The checks on host and origin protect people who run the server on their own machine. A page on another site can
 * make their browser send requests to it, by name (DNS rebinding) or across sites (CSRF).
 */
import type { IncomingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { metadataTooLarge, refuse } from "../errors.ts";

/** What the head of a request is checked against. */
export interface HeadPolicy {
  /** Bytes of all names and values. */
  readonly maxMetadataBytes: number;
  /** Tells whether a request may name a host; undefined to accept any. */
  readonly isHostAllowed: ((hostname: string) => boolean) | undefined;
  /** Origins whose pages may call besides our own, such as https://console.example.com. */
  readonly corsOrigins: ReadonlySet<string>;
}

/** What the checks read of a request. */
export interface RequestHead {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Bytes of all names and values; of the target too in HTTP/1.1, which has it outside of its headers. */
  readonly metadataBytes: number;
  /** How many Host header lines there are; 0 or 1 in HTTP/2, which has `:authority` instead. */
  readonly hostLines: number;
  /** Whether the headers announce a body that is not empty. */
  readonly announcesBody: boolean;
  /** Tells whether the target is a call, not a page. A cross-site link may open a page and make no call. */
  readonly isCall: () => boolean;
}

/** Finds what is wrong with the head of a request; undefined if nothing is. */
export function findHeadFault(head: RequestHead, policy: HeadPolicy): ConnectError | undefined {
  const { headers, metadataBytes } = head;
  if (metadataBytes > policy.maxMetadataBytes)
    return metadataTooLarge(metadataBytes, policy.maxMetadataBytes);
  const url = readAuthority(head);
  if (url === undefined) {
    return refuse(
      "HTTP_INVALID",
      "the request must name one valid host, in one Host header or in :authority",
    );
  }
  const hostname = url.hostname.replace(/\.$/, "");
  if (policy.isHostAllowed?.(hostname) === false) return hostNotAllowed(hostname);
  if (isCrossSite(head, url, policy.corsOrigins)) return crossSite(headers);
  return head.announcesBody && !headers["content-type"] ? mediaTypeMissing() : undefined;
}

/** Refuses a body whose media type is not given: a browser sends such a body for a page of any site. */
export function mediaTypeMissing(): ConnectError {
  return refuse(
    "MEDIA_TYPE_UNSUPPORTED",
    "a request with a body needs a content-type, such as application/json",
    { contentType: "" },
  );
}

/** RFC 9112, section 3.2, and RFC 9113, section 8.3.1: a request names the host that it is for, and only one. */
function readAuthority({ headers, hostLines }: RequestHead): URL | undefined {
  const authority = headers[":authority"]?.toString();
  if (hostLines > 1) return undefined;
  if (authority !== undefined && headers.host !== undefined && headers.host !== authority) return undefined;
  const text = authority ?? headers.host;
  return text === undefined ? undefined : parseAuthority(text);
}

function parseAuthority(text: string): URL | undefined {
  const isAuthority = /^[^/?#@\\]+$/.test(text) && URL.canParse(`http://${text}`);
  return isAuthority ? new URL(`http://${text}`) : undefined;
}

function hostNotAllowed(hostname: string): ConnectError {
  return refuse(
    "HOST_NOT_ALLOWED",
    `this server does not answer for the host "${hostname}"; use localhost or 127.0.0.1, or start it with --allowed-hosts`,
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
 * Tells whether a browser sends the request for a page of another origin (Fetch Metadata, W3C; RFC 6454).
 *
 * Sec-Fetch-Site decides where a browser sends it. Other browsers send Origin with every request that may change
 * something. Programs that are no browsers send neither.
 */
function isCrossSite(head: RequestHead, url: URL, corsOrigins: ReadonlySet<string>): boolean {
  const { headers } = head;
  const { origin, "sec-fetch-site": site } = headers;
  if (origin !== undefined && corsOrigins.has(origin)) return false;
  if (site === undefined) return origin !== undefined && !isOwnOrigin(origin, url);
  if (site === "same-origin" || site === "none") return false;
  return !isNavigation(head) || head.isCall();
}

function isOwnOrigin(origin: string, url: URL): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  // Parsed with the scheme of the page, so that its default port can be left out on either side.
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
 * Makes the check of host names for a server without access control: loopback names, the address that it listens on,
 * and the names that the operator adds. A name that resolves to this machine but is none of these may belong to a
 * page that rebinds it (DNS rebinding).
 *
 * @param allowed more host names; a leading dot stands for all names below it, "*" for any name.
 * @param listening the address of --host. Where that is not loopback, IP addresses are accepted: a page that rebinds
 *   needs a name.
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
