/** One call's span and its child spans. */

import type { ConnectError } from "@connectrpc/connect";
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { CallSpan } from "../../src/calls/call-span.ts";

/** Maximum child spans of one call. A batch or a stream can have any number of parts. */
const maxParts = 64;

/** @param describeEnd adds the call's outcome to the span */
export function createCallSpan(
  tracer: Tracer,
  span: Span,
  describeEnd: (error: ConnectError | undefined) => void,
): CallSpan {
  const context = trace.setSpan(ROOT_CONTEXT, span);
  let parts = 0;
  let hasEnded = false;
  return {
    ...span.spanContext(),
    startPart(name, attributes) {
      // Work that outlives the call, such as signing a checkpoint, does not belong to its span.
      if (hasEnded) return undefined;
      parts += 1;
      if (parts > maxParts) return undefined;
      const part = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, context);
      return {
        began: () => void part.addEvent("began"),
        end(error) {
          if (error !== undefined) {
            // Only the class: a message may repeat the caller's input.
            part.setAttribute("error.type", error instanceof Error ? error.name : "unknown");
            part.setStatus({ code: SpanStatusCode.ERROR });
          }
          part.end();
        },
      };
    },
    end(error) {
      hasEnded = true;
      if (parts > maxParts) span.setAttribute("qsp.parts_without_span", parts - maxParts);
      describeEnd(error);
      span.end();
    },
  };
}
