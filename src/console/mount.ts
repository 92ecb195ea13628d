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
  /** The URL of this server as clients know it, "" if it is not known; sites that show links need it for the picture. */
  readonly publicUrl: string;
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
    prepareContent("text/html; charset=utf-8", renderShell(await getAssets(), options, serviceNames)),
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

/** What other sites show beside a link to the page. */
const headline = "Today’s signatures will not survive quantum computers. This one is built to.";
const description =
  "Post-quantum cryptography at work: sign, exchange keys and try to forge, with real calls.";

/** The page before its script runs. It has a heading, so that something is there at the first paint. */
function renderShell(
  { script, style, icon, share }: Assets,
  { auth, publicUrl }: ConsoleOptions,
  serviceNames: readonly string[],
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${description}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="Quantum-Safe Playground">
<meta property="og:title" content="${headline}">
<meta property="og:description" content="${description}">
<meta property="og:image" content="${publicUrl}/console/${share}">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="The 3,309 bytes of an ML-DSA-65 signature, drawn beside Ed25519, ECDSA and RSA.">
<meta name="twitter:card" content="summary_large_image">
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
