/** Lists in turn. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { createCallerMutex } from "../../calls/caller-mutex.ts";
import { nameClient } from "../admission.ts";

/**
 * Lets each client read one page of each kind of list at a time. A page takes the event loop for many milliseconds,
 * so several at once would delay the calls of all other clients. A long search in one list delays no other list.
 */
export function listTurnInterceptor(): Interceptor {
  const runExclusively = createCallerMutex();
  return (next) => (req) =>
    req.stream || !isList(req.method)
      ? next(req)
      : runExclusively(`${req.method.name} ${nameClient(req.contextValues)}`, req.signal, () => next(req));
}

function isList({ output }: DescMethod): boolean {
  return output.field.nextPageToken !== undefined;
}
