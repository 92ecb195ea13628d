/** The spans of a call, independent of any format of traces. */
import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectError, createContextKey } from "@connectrpc/connect";
import type { SpanCounts } from "./span-counts.ts";

/** The attributes of a span: public values of a bounded set, never data of a caller. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** A call that is traced. */
export interface CallSpan {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits. */
  readonly spanId: string;
  /** Begins a part of the call; undefined once the call has more parts than are useful. */
  startPart(name: string, attributes: SpanAttributes): PartSpan | undefined;
  /** @param error undefined for a call that succeeded */
  end(error: ConnectError | undefined): void;
}

/** A part of a call that is traced: a cryptographic operation, a transaction. */
export interface PartSpan {
  /** Notes that it no longer waits. */
  began(): void;
  /** @param error what it threw; undefined if it succeeded */
  end(error?: unknown): void;
}

/** A call that begins. */
export interface BeginningCall {
  readonly method: DescMethod;
  readonly header: Headers;
  readonly requestId: string;
  /** Milliseconds since it began. */
  readonly sinceMs?: number;
}

/** Traces calls. */
export interface Tracing {
  /** @returns undefined for a call that is not traced */
  startCall(call: BeginningCall): CallSpan | undefined;
}

/** Tracing that runs. */
export interface OpenTracing extends Tracing {
  readonly counts: SpanCounts;
  /** Sends the spans that wait, for two seconds at most. */
  close(): Promise<void>;
}

/** The context key of the span of a call; undefined if it is not traced. */
export const callSpanKey = createContextKey<CallSpan | undefined>(undefined, { description: "span" });

/** Measures a part of the current call. Without a traced call it only runs the work. */
export type MeasurePart = <T>(
  name: string,
  attributes: SpanAttributes,
  work: (part: PartSpan | undefined) => Promise<T>,
) => Promise<T>;

/** Creates the measurement. @param currentSpan finds the span of the current call */
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
