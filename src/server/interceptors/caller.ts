/**
 * Names the caller that is charged for work, anywhere in the code of a call. AsyncLocalStorage carries the
 * name, which costs about a microsecond per call and spares services from passing it on.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type {
  ContextValues,
  Interceptor,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { type CallSpan, callSpanKey } from "../../calls/call-span.ts";
import { callerKey, clientKey } from "../../calls/call-values.ts";
import { systemCaller } from "../../crypto/lane.ts";
import { listNetworks } from "../../http/networks.ts";
import { isInfrastructure } from "./access.ts";

/** What is stored for the current call. */
type StoredCall = Pick<UnaryRequest | StreamRequest, "contextValues" | "signal">;

/** The current call, or the name that the current work is charged to. */
const charged = new AsyncLocalStorage<StoredCall | string>();

/** The span of the current call; undefined outside a call and in an untraced one. */
export function currentSpan(): CallSpan | undefined {
  const store = charged.getStore();
  return typeof store === "object" ? store.contextValues.get(callSpanKey) : undefined;
}

/**
 * The call that the current work belongs to, as queues need it. Work outside any call is charged to the
 * server.
 */
export const currentCall = {
  callerOf(): string {
    const store = charged.getStore();
    return typeof store === "object" ? nameCaller(store.contextValues) : (store ?? systemCaller);
  },
  /** Returns a signal that aborts when the call ends. */
  signalOf(): AbortSignal | undefined {
    const store = charged.getStore();
    return typeof store === "object" ? store.signal : undefined;
  },
};

/** Runs a function and charges its work to the named caller. */
export function chargeTo<T>(caller: string, run: () => T): T {
  return charged.run(caller, run);
}

/**
 * Charges every call and its streams to its user, or to its network until the user is known. Health checks
 * and reflection do no chargeable work.
 */
export const callerInterceptor: Interceptor = (next) => (req) => {
  if (isInfrastructure(req.method)) return next(req);
  const running = charged.run(req, next, req);
  return req.stream ? running.then((res) => chargeMessages(res, req)) : running;
};

/** A generator runs in the context of the code that requests its next message. */
function chargeMessages(res: UnaryResponse | StreamResponse, call: StoredCall): typeof res {
  if (!res.stream) return res;
  return { ...res, message: runWithin(res.message, (run) => charged.run(call, run)) };
}

function nameCaller(values: ContextValues): string {
  const caller = values.get(callerKey);
  if (caller !== undefined && caller.role !== "device") return `user ${caller.subject}`;
  // The widest network that one customer may have, so that thousands of its addresses are one caller.
  const network = listNetworks(values.get(clientKey)).at(-1) ?? "";
  // A user can register any number of devices, so all devices in a network are one caller.
  return caller === undefined ? `network ${network}` : `devices of ${network}`;
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
