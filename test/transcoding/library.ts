/** Serves the testing.Library of one test: the handlers it gives, and no others. */

import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { Library } from "../gen/testing/library_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { createRestServer, type RestOptions, type RestServer } from "./rest-server.ts";

/** Makes a transcoder of a library. */
export function serveLibrary(
  handlers: Partial<ServiceImpl<typeof Library>>,
  options: Partial<RestOptions> = {},
): RestServer {
  return createRestServer({
    ...defaultBodyLimits,
    ...options,
    services: [createServiceImplSpec(Library, handlers)],
  });
}

/** Waits until a signal aborts, and throws its reason as any well-behaved handler does. */
export async function untilAborted(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
