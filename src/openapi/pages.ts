/** Serves the description of the REST calls, and a page to read it: nothing of it comes from elsewhere. */
import { readFile } from "node:fs/promises";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Transcoder } from "../transcoding/transcoder.ts";
import { type Asset, serveAsset } from "./asset.ts";
import type { OpenApiDocument } from "./document.ts";
import type { AuthMode } from "./operations.ts";

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
    let document: Promise<OpenApiDocument> | undefined;
    const describe = (): Promise<OpenApiDocument> => {
      document ??= makeDocument(served, auth);
      document.catch(() => {
        document = undefined;
      });
      return document;
    };
    const assets: Asset[] = [
      {
        path: "/openapi.json",
        type: "application/json",
        make: async () => JSON.stringify(await describe()),
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

/** Scripts and styles come from this server's files alone; "data:" is for the icons in swagger-ui.css. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const referenceAssets: readonly Asset[] = [
  {
    path: "/reference",
    type: "text/html; charset=utf-8",
    headers: { "content-security-policy": contentSecurityPolicy, "referrer-policy": "no-referrer" },
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
