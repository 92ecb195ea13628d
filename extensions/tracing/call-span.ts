/** The span of one call, and those of its parts. */

import type { ConnectError } from "@connectrpc/connect";
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { CallSpan } from "../../src/calls/call-span.ts";

/** Parts of one call that have spans. A batch or a stream can have any number. */
const maxParts = 64;

/** @param describeEnd completes the span with how the call ended */
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
      // Work that a call leaves behind, such as signing a checkpoint, is not part of its span.
      if (hasEnded) return undefined;
      parts += 1;
      if (parts > maxParts) return undefined;
      const part = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, context);
      return {
        began: () => void part.addEvent("began"),
        end(error) {
          if (error !== undefined) {
            // Its class alone: a message may repeat what a caller sent.
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
