/** Limits, counts and logs API server calls. */
import { isMessage } from "@bufbuild/protobuf";
import { Code, type ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Logger } from "pino";
import { DecryptRequestSchema, EncryptRequestSchema, EncryptResponseSchema } from "#gen/kubernetes/kms_pb.ts";
import { explainAbort, findReason, isServerFault, refuse, toConnectError } from "../../src/errors.ts";
import type { CallFailure, CallMetrics } from "../../src/server/call-metrics.ts";

export interface ObserveDeps {
  readonly logger: Logger;
  readonly metrics: CallMetrics;
  /** Maximum concurrent calls. */
  readonly maxCalls: number;
}

/** Maximum characters of a UID in the log; API servers send 36. */
const maxUidCharacters = 100;

/** Creates the interceptor for all calls. It never logs plaintexts, ciphertexts or annotations. */
export function createObserver({ logger, metrics, maxCalls }: ObserveDeps): Interceptor {
  let running = 0;
  return (next) => async (request) => {
    const { method, message, signal } = request;
    if (running >= maxCalls) {
      metrics.callRefused(method, "CONCURRENCY_LIMITED");
      throw refuse("CONCURRENCY_LIMITED", `the plugin has ${maxCalls} calls in progress; try again`);
    }
    const startMs = performance.now();
    const about = { call: method.name, ...describe(message) };
    const end = (failure: CallFailure | undefined): number => {
      running -= 1;
      const ms = performance.now() - startMs;
      metrics.callEnded(method, failure, ms);
      return Math.round(ms * 10) / 10;
    };
    running += 1;
    metrics.callStarted(method);
    try {
      const response = await next(request);
      // Status is polled constantly; each change gets its own log line.
      const level = method.name === "Status" ? "debug" : "info";
      logger[level]({ ...about, ...describe(response.message), ms: end(undefined) }, "done");
      return response;
    } catch (thrown) {
      const error = explainAbort(toConnectError(thrown), signal);
      const ms = end({ code: error.code, reason: findReason(error) });
      logger[isServerFault(error) ? "error" : "warn"]({ ...about, ...describeError(error), ms }, "refused");
      throw error;
    }
  };
}

/** Message fields that are safe to log. */
function describe(message: object): { uid?: string; keyId?: string } {
  if (isMessage(message, EncryptRequestSchema)) return { uid: message.uid.slice(0, maxUidCharacters) };
  if (isMessage(message, DecryptRequestSchema))
    return { uid: message.uid.slice(0, maxUidCharacters), keyId: message.keyId.slice(0, maxUidCharacters) };
  return isMessage(message, EncryptResponseSchema) ? { keyId: message.keyId } : {};
}

function describeError(error: ConnectError): Record<string, unknown> {
  const reason = findReason(error);
  const cause = error.cause instanceof Error ? { err: error.cause } : {};
  return { code: Code[error.code], reason, message: error.rawMessage, ...cause };
}
