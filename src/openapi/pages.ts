/** Serves the description of the REST calls, and a page to read it: nothing of it comes from elsewhere. */
import { readFile } from "node:fs/promises";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { contentSecurityPolicy, makeOnce, prepareContent, sendContent } from "../pages.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import type { OpenApiDocument } from "./document.ts";
import type { AuthMode } from "./operations.ts";

/** Content that is made when somebody first asks for it. */
interface Asset {
  /** The path that it has: "/openapi.json". */
  readonly path: string;
  readonly type: string;
  /** The Content-Security-Policy of a page. */
  readonly policy?: string;
  readonly make: () => Promise<string | Uint8Array>;
}

/** What a server tells those who add pages to it. */
interface ServedCalls {
  readonly services: readonly ServiceImplSpec[];
  readonly transcoder: Pick<Transcoder, "routes">;
}

/**
 * Makes what adds GET /openapi.json, /openapi.yaml and /reference to a server. The document is made when somebody
 * first asks for it, so that a start does not wait for it.
 */
export function openApiPages(auth: AuthMode) {
  return async (app: FastifyInstance, served: ServedCalls): Promise<void> => {
    const describe = makeOnce(() => makeDocument(served, auth));
    const assets: Asset[] = [
      {
        path: "/openapi.json",
        type: "application/json",
        make: async () => `${JSON.stringify(await describe())}\n`,
      },
      {
        path: "/openapi.yaml",
        // RFC 9512, section 2.1.
        type: "application/yaml; charset=utf-8",
        // Without aliases: an anchor for everything that stands twice reads badly.
        make: async () => {
          const { stringify } = await import("yaml");
          return stringify(await describe(), { aliasDuplicateObjects: false, lineWidth: 110 });
        },
      },
      ...referenceAssets,
    ];
    for (const asset of assets) serveAsset(app, asset);
  };
}

function serveAsset(app: FastifyInstance, { path, type, policy, make }: Asset): void {
  const getContent = makeOnce(async () => prepareContent(type, await make()));
  app.get(path, async (request, reply) => {
    const content = await getContent();
    if (policy !== undefined) reply.header("content-security-policy", policy);
    return sendContent(request, reply.header("cache-control", "no-cache"), content);
  });
}

async function makeDocument({ services, transcoder }: ServedCalls, auth: AuthMode): Promise<OpenApiDocument> {
  // Imported here for the sake of the start.
  const { describeApi } = await import("./describe-api.ts");
  const { examples } = await import("./examples.ts");
  const { comments } = await import("#gen/comments.ts");
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  return describeApi({
    title: "Quantum-Safe Playground",
    version,
    services: services.map(({ service }) => service),
    routes: transcoder.routes,
    comments,
    examples,
    auth,
  });
}

const referenceAssets: readonly Asset[] = [
  {
    path: "/reference",
    type: "text/html; charset=utf-8",
    // "data:" is for the icons in swagger-ui.css.
    policy: contentSecurityPolicy("'self' data:"),
    make: () => readOwn("index.html"),
  },
  { path: "/reference/page.js", type: "text/javascript; charset=utf-8", make: () => readOwn("page.js") },
  { path: "/reference/page.css", type: "text/css; charset=utf-8", make: () => readOwn("page.css") },
  {
    path: "/reference/swagger-ui-bundle.js",
    type: "text/javascript; charset=utf-8",
    make: () => readSwaggerUi("swagger-ui-bundle.js"),
  },
  {
    path: "/reference/swagger-ui.css",
    type: "text/css; charset=utf-8",
    make: () => readSwaggerUi("swagger-ui.css"),
  },
  { path: "/reference/icon.png", type: "image/png", make: () => readSwaggerUi("favicon-32x32.png") },
];

function readOwn(name: string): Promise<Uint8Array> {
  return readFile(new URL(`reference/${name}`, import.meta.url));
}

function readSwaggerUi(name: string): Promise<Uint8Array> {
  return readFile(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)));
}
