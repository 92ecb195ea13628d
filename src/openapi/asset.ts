/** Answers GET with content that stays the same as long as the server runs. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { entityTagOf, matchesEntityTag } from "../transcoding/rendering.ts";

const gzipAsync = promisify(gzip);

/** Content that is made when somebody first asks for it. */
export interface Asset {
  /** The path that it has: "/openapi.json". */
  readonly path: string;
  readonly type: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes the content, once. */
  readonly make: () => Promise<string | Uint8Array>;
}

/** Content ready to be sent. */
interface Ready {
  readonly plain: Buffer;
  readonly gzipped: Buffer;
  readonly tag: string;
}

/** Serves an asset, compressed for those who take it, and not again to those who have it. */
export function serveAsset(app: FastifyInstance, { path, type, headers, make }: Asset): void {
  let ready: Promise<Ready> | undefined;
  app.get(path, async (request, reply) => {
    ready ??= prepare(make);
    // A file that could not be read may be there the next time.
    ready.catch(() => {
      ready = undefined;
    });
    const { plain, gzipped, tag } = await ready;
    reply.headers({ ...headers, etag: tag, "cache-control": "no-cache", vary: "accept-encoding" });
    reply.header("x-content-type-options", "nosniff");
    if (matchesEntityTag(request.headers["if-none-match"] ?? null, tag)) return reply.code(304).send();
    reply.type(type);
    if (!takesGzip(request.headers["accept-encoding"])) return reply.send(plain);
    return reply.header("content-encoding", "gzip").send(gzipped);
  });
}

async function prepare(make: () => Promise<string | Uint8Array>): Promise<Ready> {
  const plain = Buffer.from(await make());
  // Weak: the compressed form is the same content in other bytes (RFC 9110, section 8.8.1).
  return { plain, gzipped: await gzipAsync(plain), tag: `W/${entityTagOf(plain)}` };
}

function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  return /(^|,)\s*(gzip|x-gzip)\s*(,|$|;\s*q=(1|0?\.\d*[1-9]))/i.test(String(acceptEncoding ?? ""));
}
