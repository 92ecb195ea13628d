/** Serves the OpenAPI description. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Example } from "../calls/example.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { memoize, prepareContent, serveContent } from "../http/static-content.ts";
import { describeServices } from "./describe-services.ts";
import type { AuthMode } from "./operations.ts";

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
    serveContent(app, "/openapi.json", async () =>
      prepareContent("application/json", `${(await getDescription()).json}\n`),
    );
    serveContent(app, "/openapi.yaml", async () =>
      // RFC 9512, section 2.1.
      prepareContent("application/yaml; charset=utf-8", await (await getDescription()).yaml),
    );
    app.addHook("onClose", async () => stopped.abort());
  };
}
