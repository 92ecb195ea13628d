/** Serves the description of the REST calls, and a page to read it. Nothing is loaded from other servers. */
import { readFile } from "node:fs/promises";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { findProgramFile } from "../program-files.ts";
import type { Example } from "../protocol/example.ts";
import type { ServiceProfiles } from "../protocol/service-profile.ts";
import { contentSecurityPolicy, memoize, prepareContent, sendContent } from "../protocol/static-content.ts";
import { describeServices } from "./describe-services.ts";
import type { AuthMode } from "./operations.ts";
import { findSwaggerUi } from "./swagger-ui.ts";

/** Content that is created on the first request for it. */
interface Asset {
  /** The path of the content: "/openapi.json". */
  readonly path: string;
  readonly type: string;
  /** The Content-Security-Policy of a page. */
  readonly policy?: string;
  readonly make: () => Promise<string | Uint8Array>;
}

/** The inputs of the description, besides the services. */
export interface OpenApiOptions {
  readonly auth: AuthMode;
  /** Example requests. Those of calls that are not served are omitted. */
  readonly examples: readonly Example[];
}

/** The services that the pages describe. */
interface ServedCalls {
  readonly services: readonly Pick<ServiceImplSpec, "service">[];
  readonly profiles: ServiceProfiles;
}

/**
 * Creates the plugin that adds GET /openapi.json, /openapi.yaml and /reference to a server. A thread creates the
 * description for its first reader, for whom it takes most of a second. No other call waits for it.
 */
export function openApiPages({ auth, examples }: OpenApiOptions) {
  return async (app: FastifyInstance, { services, profiles }: ServedCalls): Promise<void> => {
    const stopped = new AbortController();
    const getDescription = memoize(() =>
      describeServices(
        services.map(({ service }) => service),
        { auth, examples, profiles },
        stopped.signal,
      ),
    );
    const assets: Asset[] = [
      {
        path: "/openapi.json",
        type: "application/json",
        make: async () => `${(await getDescription()).json}\n`,
      },
      {
        path: "/openapi.yaml",
        // RFC 9512, section 2.1.
        type: "application/yaml; charset=utf-8",
        make: async () => (await getDescription()).yaml,
      },
      ...referenceAssets,
    ];
    for (const asset of assets) serveAsset(app, asset);
    app.addHook("onClose", async () => stopped.abort());
  };
}

function serveAsset(app: FastifyInstance, { path, type, policy, make }: Asset): void {
  const getContent = memoize(async () => prepareContent(type, await make()));
  app.get(path, async (request, reply) => {
    const content = await getContent();
    if (policy !== undefined) reply.header("content-security-policy", policy);
    return sendContent(request, reply.header("cache-control", "no-cache"), content);
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
    make: () => readFile(findSwaggerUi("swagger-ui-bundle.js")),
  },
  {
    path: "/reference/swagger-ui.css",
    type: "text/css; charset=utf-8",
    make: () => readFile(findSwaggerUi("swagger-ui.css")),
  },
  {
    path: "/reference/icon.png",
    type: "image/png",
    make: () => readFile(findSwaggerUi("favicon-32x32.png")),
  },
];

function readOwn(name: string): Promise<Uint8Array> {
  return readFile(findProgramFile(`openapi/reference/${name}`));
}
