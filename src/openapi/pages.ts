/** Serves the OpenAPI description. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Example } from "../calls/example.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { memoize, prepareContent, sendContent } from "../http/static-content.ts";
import { describeServices } from "./describe-services.ts";
import type { AuthMode } from "./operations.ts";

/** Content created on first request. */
interface Asset {
  /** Path of the content: "/openapi.json". */
  readonly path: string;
  readonly type: string;
  readonly make: () => Promise<string>;
}

export interface OpenApiOptions {
  readonly auth: AuthMode;
  /** Example requests. Examples for calls that are not served are omitted. */
  readonly examples: readonly Example[];
}

/** The services that the pages describe. */
interface ServedCalls {
  readonly services: readonly Pick<ServiceImplSpec, "service">[];
  readonly profiles: ServiceProfiles;
}

/**
 * Returns the plugin that adds GET /openapi.json and /openapi.yaml to a server.
 *
 * A thread creates the description for its first reader, which takes most of a second. No other call waits
 * for it.
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
    ];
    for (const asset of assets) serveAsset(app, asset);
    app.addHook("onClose", async () => stopped.abort());
  };
}

function serveAsset(app: FastifyInstance, { path, type, make }: Asset): void {
  const getContent = memoize(async () => prepareContent(type, await make()));
  app.get(path, async (request, reply) => {
    const content = await getContent();
    return sendContent(request, reply.header("cache-control", "no-cache"), content);
  });
}
