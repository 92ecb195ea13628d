/** Parts of large content (RFC 9110, sections 13 and 14). */
import { refuse } from "../errors.ts";
import { matchesEntityTag } from "./entity-tags.ts";

/** Content that a call streams as google.api.HttpBody messages. */
export interface StreamedContent {
  readonly length: number;
  /** A strong entity tag: the same bytes have the same tag. */
  readonly tag: string;
  readonly cacheControl: string;
}

/** Offsets of the first byte, and of the byte after the last. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** What a handler's context says about the request, and where it sets headers. */
export interface ContentCall {
  readonly protocolName: string;
  readonly requestMethod: string;
  readonly requestHeader: Headers;
  readonly responseHeader: Headers;
}

/**
 * Announces the content that a handler is about to stream, and returns the part to stream.
 *
 * Over REST, it sets the headers from which the transcoder derives the status: 206 if the caller asked for a part, 304
 * if the caller already has this content (nothing is left to stream then), or 200. A handler that streams other than
 * the announced bytes breaks the connection. Other protocols have no ranges, so their calls stream everything.
 *
 * @throws RANGE_NOT_SATISFIABLE
 */
export function openContent(call: ContentCall, { length, tag, cacheControl }: StreamedContent): ByteRange {
  const { requestMethod, requestHeader: asked, responseHeader: headers } = call;
  const whole = { from: 0, to: length };
  if (call.protocolName !== "rest") return whole;
  headers.set("etag", tag);
  headers.set("cache-control", cacheControl);
  headers.set("accept-ranges", "bytes");
  if (matchesEntityTag(asked.get("if-none-match"), tag)) return { from: 0, to: 0 };
  // Section 14.2: ranges are defined for GET only. Section 13.1.5: they hold for the content of the tag only.
  const isForThis = (asked.get("if-range") ?? tag).trim() === tag;
  const part = requestMethod === "GET" && isForThis ? findRange(asked.get("range"), length) : undefined;
  const { from, to } = part ?? whole;
  headers.set("content-length", String(to - from));
  if (part !== undefined) headers.set("content-range", `bytes ${from}-${to - 1}/${length}`);
  return { from, to };
}

/**
 * Reads a Range header (section 14.1.2). Several ranges, and anything that is not a range of bytes, count as no range,
 * as section 14.2 permits: the caller then gets the whole content once, however many ranges it lists.
 *
 * @throws RANGE_NOT_SATISFIABLE
 */
function findRange(range: string | null, length: number): ByteRange | undefined {
  const [, first = "", last = ""] = /^\s*bytes\s*=\s*(\d*)-(\d*)\s*$/i.exec(range ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const from = first === "" ? Math.max(0, length - Number(last)) : Number(first);
  const to = first === "" || last === "" ? length : Math.min(length, Number(last) + 1);
  if (first !== "" && last !== "" && Number(last) < from) return undefined;
  if (from < to) return { from, to };
  const error = refuse("RANGE_NOT_SATISFIABLE", `the content has ${length} bytes; none is in the range`, {
    length: String(length),
  });
  error.metadata.set("content-range", `bytes */${length}`);
  throw error;
}
