/** The steps around every unary call, in every protocol. */
import type { Interceptor, UnaryRequest } from "@connectrpc/connect";
import { nameClient } from "../admission.ts";
import type { AnswerPace } from "../answer-pace.ts";
import type { MapError } from "./errors.ts";
import type { Observer } from "./observe.ts";
import { setStatus } from "./status.ts";

type Next = ReturnType<Interceptor>;

/**
 * Observes unary calls, completes their answers and explains their errors. Streams have separate
 * interceptors.
 */
export function unaryInterceptor(
  observer: Observer,
  mapError: MapError,
  pace: Pick<AnswerPace, "waitIfBusy">,
): Interceptor {
  const run = async (req: UnaryRequest, next: Next): ReturnType<Next> => {
    const observed = observer.start(req);
    try {
      const res = await next(req);
      if (!res.stream) setStatus(req.method.output, res.message);
      observed.succeeded(res.header);
      return res;
    } catch (thrown) {
      const error = mapError(thrown, req);
      // The call keeps its place meanwhile, so later calls are refused by their heads, which is cheaper.
      await pace.waitIfBusy(error, () => nameClient(req.contextValues));
      observed.failed(error);
      throw error;
    }
  };
  return (next) => (req) => (req.stream ? next(req) : run(req, next));
}
