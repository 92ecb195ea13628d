/**
 * Serves the web pages: the console at "/" for callers that accept HTML, the REST reference at /reference, and their
 * files under /console/.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import {
  contentSecurityPolicy,
  memoize,
  prepareContent,
  sendContent,
  varyBy,
} from "../http/static-content.ts";
import { type Assets, readAssets } from "./assets.ts";

/** Settings that the console needs before its first call. */
export interface ConsoleOptions {
  /** Whether calls require a token. */
  readonly auth: "open" | "token";
  /** The URL of this server as clients see it, or "" if unknown; link previews need it for the image. */
  readonly publicUrl: string;
}

/** What the server offers to modules that add pages. */
interface Served {
  readonly services: readonly { readonly service: { readonly typeName: string } }[];
  /** The answer at "/" for callers that do not accept HTML. */
  readonly index: string;
}

/** Returns the function that adds the console to a server. */
export function consolePages(options: ConsoleOptions) {
  return async (app: FastifyInstance, served: Served): Promise<void> => mountConsole(app, served, options);
}

function mountConsole(app: FastifyInstance, { services, index }: Served, options: ConsoleOptions): void {
  const serviceNames = services.map(({ service }) => service.typeName);
  const getAssets = memoize(readAssets);
  const preparePage = (page: Page) =>
    memoize(async () => {
      const shell = renderShell(page, await getAssets(), options, serviceNames);
      return prepareContent("text/html; charset=utf-8", shell);
    });
  const getConsole = preparePage(consolePage);
  const getReference = preparePage(referencePage);

  app.get("/", async (request, reply) => {
    varyBy(reply, "accept");
    if (!takesHtml(request)) return reply.type("text/plain").send(index);
    reply.header("content-security-policy", contentSecurityPolicy).header("cache-control", "no-cache");
    return sendContent(request, reply, await getConsole());
  });
  app.get("/reference", async (request, reply) => {
    reply.header("content-security-policy", contentSecurityPolicy).header("cache-control", "no-cache");
    return sendContent(request, reply, await getReference());
  });
  app.get<{ Params: { name: string } }>("/console/:name", async (request, reply) => {
    const file = (await getAssets()).files.get(request.params.name);
    if (file === undefined) return reply.callNotFound();
    reply
      .header("content-security-policy", contentSecurityPolicy)
      .header("cache-control", "public, max-age=31536000, immutable");
    return sendContent(request, reply, file);
  });
}

/** A page before its script runs. */
interface Page {
  readonly entry: "console" | "reference";
  readonly title: string;
  readonly description: string;
  /** URL of data that the script requests first, so that the browser preloads it along with the script. */
  readonly data?: string;
}

const consolePage: Page = {
  entry: "console",
  title: "Quantum-Safe Playground",
  description: "Post-quantum cryptography at work: sign, exchange keys and try to forge, with real calls.",
};

const referencePage: Page = {
  entry: "reference",
  title: "API reference",
  description: "Every REST call of this server, with answers, snippets and a form that makes the call.",
  data: "/openapi.json",
};

/** Returns whether a caller explicitly accepts HTML: browsers do; curl accepts anything. */
function takesHtml({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? "")
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .some((part) => /^text\/html\b/.test(part) && !/;\s*q=0(\.0*)?\s*$/.test(part));
}

/** Describes the console for link previews (the Open Graph protocol). */
function describeLink(publicUrl: string, picture: string): string {
  const properties = {
    type: "website",
    site_name: "Quantum-Safe Playground",
    title: "Today’s signatures will not survive quantum computers. This one is built to.",
    description: consolePage.description,
    image: escapeAttribute(`${publicUrl}/console/${picture}`),
    "image:width": "1200",
    "image:height": "630",
    "image:alt": "The 3,309 bytes of an ML-DSA-65 signature, drawn next to Ed25519, ECDSA and RSA.",
  };
  const lines = Object.entries(properties).map(
    ([name, value]) => `<meta property="og:${name}" content="${value}">`,
  );
  return ["", ...lines, '<meta name="twitter:card" content="summary_large_image">'].join("\n");
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

/** Renders a page before its script runs. It has a heading, so that the first paint is not empty. */
function renderShell(
  { entry, title, description, data }: Page,
  assets: Assets,
  { auth, publicUrl }: ConsoleOptions,
  serviceNames: readonly string[],
): string {
  const { script, style } = assets[entry];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${description}">${
    entry === "console" ? describeLink(publicUrl, assets.share) : ""
  }
<meta name="qsp-auth" content="${auth}">
<meta name="qsp-services" content="${serviceNames.join(" ")}">
<title>${title}</title>
<link rel="icon" href="/console/${assets.icon}" type="image/svg+xml">
<link rel="stylesheet" href="/console/${style}">${
    data === undefined ? "" : `\n<link rel="preload" href="${data}" as="fetch" crossorigin>`
  }
<script type="module" src="/console/${script}"></script>
</head>
<body>
<div id="app"><main class="loading"><h1>${title}</h1>${
    data === undefined ? "" : `\n<p>${description}</p>\n<div class="skeleton" aria-hidden="true"></div>`
  }
<noscript><p>This page needs JavaScript to call the server. <a href="/openapi.yaml">/openapi.yaml</a> describes all calls.</p></noscript></main></div>
</body>
</html>
`;
}
