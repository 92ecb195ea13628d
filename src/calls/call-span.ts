/** The spans of a call, independent of any trace format. */
import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectError, createContextKey } from "@connectrpc/connect";

/** Span attributes: public values from a bounded set, never caller data. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** A traced call. */
export interface CallSpan {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits. */
  readonly spanId: string;
  /** Starts a child span; undefined once the call has more of them than are useful. */
  startPart(name: string, attributes: SpanAttributes): PartSpan | undefined;
  /** @param error undefined for a successful call */
  end(error: ConnectError | undefined): void;
}

/** A child span: a cryptographic operation or a transaction. */
export interface PartSpan {
  /** Records that the work no longer waits. */
  began(): void;
  /** @param error what the work threw; undefined if it succeeded */
  end(error?: unknown): void;
}

/** A call about to start. */
export interface BeginningCall {
  readonly method: DescMethod;
  readonly header: Headers;
  readonly requestId: string;
  /** Milliseconds since it began. */
  readonly sinceMs?: number;
}

export interface Tracing {
  /** @returns undefined for a call that is not traced */
  startCall(call: BeginningCall): CallSpan | undefined;
}

/** The outcomes of a server's trace spans. */
export interface SpanCounts {
  /** Accepted by the collector. */
  readonly exported: number;
  /** Rejected by the collector. */
  readonly failed: number;
  /** Dropped because the queue was full. */
  readonly dropped: number;
  /** Calls not traced although their callers record a trace, because too many callers do. */
  readonly limited: number;
}

/** Tracing that has to be closed. */
export interface OpenTracing extends Tracing {
  readonly counts: SpanCounts;
  /** Sends the pending spans, for two seconds at most. */
  close(): Promise<void>;
}

/** Context key for a call's span; undefined if it is not traced. */
export const callSpanKey = createContextKey<CallSpan | undefined>(undefined, { description: "span" });

/** Measures part of the current call. Outside a traced call, it only runs the work. */
export type MeasurePart = <T>(
  name: string,
  attributes: SpanAttributes,
  work: (part: PartSpan | undefined) => Promise<T>,
) => Promise<T>;

/**
 * Creates the function that measures work.
 *
 * @param currentSpan returns the span of the current call
 */
export function createMeasurePart(currentSpan: () => CallSpan | undefined): MeasurePart {
  return (name, attributes, work) => {
    const part = currentSpan()?.startPart(name, attributes);
    return part === undefined ? work(undefined) : measure(part, work);
  };
}

async function measure<T>(part: PartSpan, work: (part: PartSpan) => Promise<T>): Promise<T> {
  try {
    const result = await work(part);
    part.end();
    return result;
  } catch (error) {
    part.end(error);
    throw error;
  }
}
