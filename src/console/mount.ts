/** Serves the console: the page at "/" for who takes HTML, and its files under /console/. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Asset, type Assets, buildAssets, tagOf } from "./assets.ts";

/** What the console has to know before its first call. */
export interface ConsoleOptions {
  /** Whether calls want a token. */
  readonly auth: "open" | "token";
  /** Told when the page can not be made; the server serves on without it. */
  readonly onError: (error: unknown) => void;
}

/** What a server tells those who add pages to it. */
interface Served {
  readonly services: readonly { readonly service: { readonly typeName: string } }[];
  /** What "/" answers to who does not take HTML. */
  readonly index: string;
}

/** How long the server is left to its first callers before the page is made; a reader who is earlier has it made. */
const buildAfterMs = 1000;

/** No script, style or call that is not the server's own; nothing inline; in no frame. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Gives what adds the console to a server. */
export function consolePages(options: ConsoleOptions) {
  return async (app: FastifyInstance, served: Served): Promise<void> => mountConsole(app, served, options);
}

function mountConsole(app: FastifyInstance, { services, index }: Served, options: ConsoleOptions): void {
  const serviceNames = services.map(({ service }) => service.typeName);
  let building: Promise<Assets> | undefined;
  const getAssets = (): Promise<Assets> => {
    building ??= buildAssets();
    return building;
  };
  const early = setTimeout(() => void getAssets().catch(options.onError), buildAfterMs).unref();
  app.addHook("onClose", async () => clearTimeout(early));

  app.get("/", async (request, reply) => {
    // The server tells pages of other origins apart, and so must caches.
    reply.header("vary", "accept, origin");
    if (!takesHtml(request)) return reply.type("text/plain").send(index);
    const html = renderShell(await getAssets(), options.auth, serviceNames);
    const tag = tagOf(html);
    reply
      .header("content-security-policy", contentSecurityPolicy)
      .header("cache-control", "no-cache")
      .header("etag", tag);
    if (request.headers["if-none-match"] === tag) return reply.code(304).send();
    return reply.type("text/html; charset=utf-8").send(html);
  });
  app.get<{ Params: { name: string } }>("/console/:name", async (request, reply) => {
    const asset = (await getAssets()).files.get(request.params.name);
    if (asset === undefined) return reply.callNotFound();
    return sendAsset(request, reply, asset);
  });
}

/** Tells whether a caller asked for HTML by name: a browser does, curl says that it takes anything. */
function takesHtml({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? "")
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .some((part) => /^text\/html\b/.test(part) && !/;\s*q=0(\.0*)?\s*$/.test(part));
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
  const offered = (request.headers["accept-encoding"] ?? "")
    .toString()
    .split(",")
    .map((part) => part.trim().split(";")[0]);
  const encoding = (["br", "gzip"] as const).find((name) => offered.includes(name));
  reply
    .type(asset.type)
    .header("content-security-policy", contentSecurityPolicy)
    .header("cache-control", "public, max-age=31536000, immutable")
    .header("vary", "accept-encoding, origin");
  if (encoding !== undefined) reply.header("content-encoding", encoding);
  return reply.send(Buffer.from(asset[encoding ?? "identity"]));
}

/** The page before its script runs. It has a heading, so that something is there at the first paint. */
function renderShell({ script, style, icon }: Assets, auth: string, serviceNames: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="Post-quantum cryptography at work, with real calls, bytes and sizes.">
<meta name="qsp-auth" content="${auth}">
<meta name="qsp-services" content="${serviceNames.join(" ")}">
<title>Quantum-Safe Playground</title>
<link rel="icon" href="/console/${icon}" type="image/svg+xml">
<link rel="stylesheet" href="/console/${style}">
<script type="module" src="/console/${script}"></script>
</head>
<body>
<div id="app"><main class="loading"><h1>Quantum-Safe Playground</h1>
<noscript><p>This page calls the server from a script, and your browser runs none.</p></noscript></main></div>
</body>
</html>
`;
}
