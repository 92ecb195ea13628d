/** Serves the console: the page at "/" for callers that accept HTML, and its files under /console/. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import {
  contentSecurityPolicy,
  memoize,
  prepareContent,
  sendContent,
  varyBy,
} from "../protocol/static-content.ts";
import { type Assets, readAssets } from "./assets.ts";

/** What the console needs to know before its first call. */
export interface ConsoleOptions {
  /** Whether calls need a token. */
  readonly auth: "open" | "token";
}

/** What a server provides to modules that add pages to it. */
interface Served {
  readonly services: readonly { readonly service: { readonly typeName: string } }[];
  /** The answer of "/" to callers that do not accept HTML. */
  readonly index: string;
}

/** Returns the function that adds the console to a server. */
export function consolePages(options: ConsoleOptions) {
  return async (app: FastifyInstance, served: Served): Promise<void> => mountConsole(app, served, options);
}

function mountConsole(app: FastifyInstance, { services, index }: Served, options: ConsoleOptions): void {
  const serviceNames = services.map(({ service }) => service.typeName);
  const getAssets = memoize(readAssets);
  const getPage = memoize(async () =>
    prepareContent("text/html; charset=utf-8", renderShell(await getAssets(), options.auth, serviceNames)),
  );
  const policy = contentSecurityPolicy();

  app.get("/", async (request, reply) => {
    varyBy(reply, "accept");
    if (!takesHtml(request)) return reply.type("text/plain").send(index);
    reply.header("content-security-policy", policy).header("cache-control", "no-cache");
    return sendContent(request, reply, await getPage());
  });
  app.get<{ Params: { name: string } }>("/console/:name", async (request, reply) => {
    const file = (await getAssets()).files.get(request.params.name);
    if (file === undefined) return reply.callNotFound();
    reply
      .header("content-security-policy", policy)
      .header("cache-control", "public, max-age=31536000, immutable");
    return sendContent(request, reply, file);
  });
}

/** Tells whether a caller explicitly accepts HTML: a browser does; curl accepts anything. */
function takesHtml({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? "")
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .some((part) => /^text\/html\b/.test(part) && !/;\s*q=0(\.0*)?\s*$/.test(part));
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
<noscript><p>This page needs JavaScript to call the server.</p></noscript></main></div>
</body>
</html>
`;
}
