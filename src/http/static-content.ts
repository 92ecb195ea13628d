/** Shared by all pages: how their files are sent, and their Content-Security-Policy. */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { chooseCoding } from "./content-coding.ts";
import { computeEntityTag, matchesEntityTag, toWeakTag } from "./entity-tags.ts";

/** The codings in which content is stored, smallest first. */
const codings = ["br", "gzip"] as const;

/** Static content in each of its encoded forms. */
export interface Content {
  readonly type: string;
  /** By content coding (RFC 9110, section 8.4.1). */
  readonly forms: Readonly<{ identity: Uint8Array; br?: Uint8Array; gzip?: Uint8Array }>;
  /** Weak: the forms are the same content in different bytes (section 8.8.1). */
  readonly tag: string;
}

/** Compresses content once, for all requests. */
export async function prepareContent(type: string, content: string | Uint8Array): Promise<Content> {
  const identity = Buffer.from(content);
  const [br, gzipped] = await Promise.all([
    promisify(brotliCompress)(identity, { params: chooseBrotliParams(identity.byteLength) }),
    promisify(gzip)(identity, { level: 9 }),
  ]);
  return { type, forms: { identity, br, gzip: gzipped }, tag: toWeakTag(computeEntityTag(identity)) };
}

function chooseBrotliParams(byteCount: number): Record<number, number> {
  // A window holds 16 bytes less than its power of two (RFC 7932, section 9.1).
  const windowBits = Math.ceil(Math.log2(byteCount + 16));
  return {
    // Quality 9 is within a twentieth of the best size, in a tenth of the time.
    [constants.BROTLI_PARAM_QUALITY]: 9,
    // The memory of a window larger than the content costs most of the time.
    [constants.BROTLI_PARAM_LGWIN]: Math.min(
      Math.max(windowBits, constants.BROTLI_MIN_WINDOW_BITS),
      constants.BROTLI_DEFAULT_WINDOW,
    ),
  };
}

/** Prepares content that is already compressed, such as an archive. */
export function prepareCompressed(type: string, content: Uint8Array): Content {
  return { type, forms: { identity: content }, tag: `W/${computeEntityTag(content)}` };
}

/** Serves content at a path. The first request creates it. */
export function serveContent(
  app: FastifyInstance,
  path: string,
  make: () => Promise<Content>,
  headers: Readonly<Record<string, string>> = {},
): void {
  const getContent = memoize(make);
  app.get(path, async (request, reply) => {
    const content = await getContent();
    return sendContent(request, reply.headers({ "cache-control": "no-cache", ...headers }), content);
  });
}

/** Sends content in the form that the caller prefers, or 304 if the caller already has it. */
export function sendContent(request: FastifyRequest, reply: FastifyReply, content: Content): FastifyReply {
  const { type, forms, tag } = content;
  const { coding = "identity" } = chooseCoding(request.headers["accept-encoding"]?.toString(), codings);
  const form = forms[coding] === undefined ? "identity" : coding;
  varyBy(reply, "accept-encoding").header("etag", tag);
  if (matchesEntityTag(request.headers["if-none-match"] ?? null, tag)) return reply.code(304).send();
  if (form !== "identity") reply.header("content-encoding", form);
  return reply.type(type).send(forms[form]);
}

/** Adds a request header that the response depends on to `vary`. */
export function varyBy(reply: FastifyReply, name: string): FastifyReply {
  const named = reply.getHeader("vary") ?? reply.raw.getHeader("vary");
  return reply.header("vary", [named, name].filter(Boolean).join(", "));
}

/** A Content-Security-Policy: only the server's own scripts, styles, images and calls, nothing inline, and no frames. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Computes a value on first use. After a failure, the next call tries again. */
export function memoize<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => {
    making ??= make().catch((error: unknown) => {
      making = undefined;
      throw error;
    });
    return making;
  };
}
