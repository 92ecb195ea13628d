/** Runs steps against a few handlers in the test, with the real codec and errors, but no socket. */
import type { DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createRouterTransport,
  type ServiceImpl,
} from "@connectrpc/connect";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import type { Caller } from "../../page/caller.ts";

/**
 * Calls the routes, with the token as the header "authorization".
 *
 * @param routes adds the services, each with the methods that the test needs
 */
export function createFakeCaller(routes: (router: ConnectRouter) => void): Caller {
  const transport = createRouterTransport(routes);
  return {
    call: async (method, request, { token = "of the session" } = {}) =>
      (await transport.unary(method, undefined, undefined, { authorization: token ?? "" }, request)).message,
  };
}

/** A server's refusal. */
export function refusalOf(reason: string): ConnectError {
  const details = [{ desc: ErrorInfoSchema, value: { reason } }];
  return new ConnectError("refused", Code.FailedPrecondition, undefined, details);
}

/** A caller of one service. */
export function serve<S extends DescService>(service: S, methods: Partial<ServiceImpl<S>>): Caller {
  return createFakeCaller((router) => void router.service(service, methods));
}

/** A test's input for a step: of the earlier steps' results, only the parts that it reads. */
type Given<G> = { readonly [Name in keyof G]?: G[Name] extends string ? string : Partial<G[Name]> };

interface Runnable<T, G, S> {
  run(caller: Caller, given: G, shared: S): Promise<T>;
}

/** Runs a step as its story would. */
export function runStep<T, G, S>(
  step: Runnable<T, G, S>,
  caller: Caller,
  given: Given<NoInfer<G>>,
  shared?: Partial<NoInfer<S>>,
): Promise<T> {
  // It reads only what the test provides.
  return step.run(caller, given as G, shared as S);
}
