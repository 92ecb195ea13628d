/** A caller for steps, whose server is a few handlers in the test: with the real codec and errors, and no socket. */
import { type ConnectRouter, createRouterTransport } from "@connectrpc/connect";
import type { Caller } from "../../page/caller.ts";
import { toFailure } from "../../page/failure.ts";

/** @param routes adds the services, each with the methods that the test needs */
export function createFakeCaller(routes: (router: ConnectRouter) => void): Caller {
  const transport = createRouterTransport(routes);
  const call: Caller["call"] = async (method, request) =>
    (await transport.unary(method, undefined, undefined, undefined, request)).message;
  return {
    call,
    callRefused: (method, request) =>
      call(method, request).then(() => {
        throw new Error("the server answers");
      }, toFailure),
  };
}
