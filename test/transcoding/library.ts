/** Serves the testing.Library of one test with the given handlers. */

import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { Library } from "../gen/testing/library_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { createRestServer, type RestOptions, type RestServer } from "./rest-server.ts";

/** Creates a transcoder for a library. */
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

/** Waits until a signal aborts, and throws its reason like any well-behaved handler. */
export async function untilAborted(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
