/**
 * Names who is charged for the work of a call, wherever the call's code asks for it. AsyncLocalStorage carries the name:
 * it costs about a microsecond a call, and no service has to pass the name on.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { callerKey, clientKey } from "../../protocol/call-values.ts";
import { listNetworks } from "../../protocol/networks.ts";

const calls = new AsyncLocalStorage<() => string>();

/** Names who is charged for what is asked for now; undefined outside of any call. */
export function currentCaller(): string | undefined {
  return calls.getStore()?.();
}

/** Runs something that is charged to a caller of this name. */
export function chargeTo<T>(caller: string, run: () => T): T {
  return calls.run(() => caller, run);
}

/** Charges every call, and what its streams do, to its user, or to the network it came from while there is none. */
export const callerInterceptor: Interceptor = (next) => async (req) => {
  const nameCaller = createNaming(req.contextValues);
  const res = await calls.run(nameCaller, () => next(req));
  if (!res.stream) return res;
  // A generator runs on behalf of whoever asks it for its next message.
  return { ...res, message: runWithin(res.message, (run) => calls.run(nameCaller, run)) };
};

/** The user is known only once the call has been authenticated; the network does not change. */
function createNaming(values: ContextValues): () => string {
  let network: string | undefined;
  return () => {
    const caller = values.get(callerKey);
    if (caller !== undefined && caller.role !== "device") return `user ${caller.subject}`;
    // The widest network that one customer may have: thousands of its addresses are one caller.
    network ??= listNetworks(values.get(clientKey)).at(-1) ?? "";
    // A user can register any number of devices; they share the turn of where they are.
    return caller === undefined ? `network ${network}` : `devices of ${network}`;
  };
}

function runWithin<T>(source: AsyncIterable<T>, within: <R>(run: () => R) => R): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = within(() => source[Symbol.asyncIterator]());
      const end = iterator.return?.bind(iterator);
      return {
        next: () => within(() => iterator.next()),
        ...(end && { return: (value?: unknown) => within(() => end(value)) }),
      };
    },
  };
}
