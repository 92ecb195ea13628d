/** Counts exported, failed and dropped spans. */
import { createNoopMeter, type MeterProvider } from "@opentelemetry/api";
import type { SpanCounts } from "../../src/calls/call-span.ts";

export type GrowingCounts = { -readonly [Name in Exclude<keyof SpanCounts, "limited">]: number };

/** The counter in which a span processor counts processed spans. */
const processedSpans = "otel.sdk.processor.span.processed";

/** Creates a provider for the processor's own counter, the only one that includes dropped spans. */
export function countSpans(counts: GrowingCounts): MeterProvider {
  const meter = createNoopMeter();
  const counting = Object.assign(Object.create(meter), {
    createCounter(name: string, options?: object) {
      if (name !== processedSpans) return meter.createCounter(name, options);
      return {
        add(spans: number, attributes: Readonly<Record<string, unknown>> = {}) {
          const error = attributes["error.type"];
          if (error === undefined) counts.exported += spans;
          else if (error === "queue_full") counts.dropped += spans;
          else counts.failed += spans;
        },
      };
    },
  });
  return { getMeter: () => counting };
}
