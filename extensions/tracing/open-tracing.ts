/**
 * Traces calls with the OpenTelemetry SDK and exports the spans over OTLP. Loaded only if tracing is on.
 *
 * Spans wait in a bounded queue and are sent in the background. A slow or unreachable collector loses spans,
 * never calls.
 */
import { type AttributeValue, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { parseTraceParent, setGlobalErrorHandler, TraceState } from "@opentelemetry/core";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as HttpExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type SpanExporter,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import type { OpenTracing } from "../../src/calls/call-span.ts";
import { describeFailure, nameSystem } from "./attributes.ts";
import { createCallSpan } from "./call-span.ts";
import { createFailureReport } from "./report-failures.ts";
import { createSampler } from "./sampling.ts";
import { countSpans } from "./span-counts.ts";
import type { TraceSettings } from "./trace-options.ts";

/** Maximum queued spans: about two megabytes. */
const maxQueuedSpans = 2048;
const batchSpans = 512;
/** Milliseconds between batches. */
const exportIntervalMs = 1000;
/** Timeout of a batch in milliseconds, including retries. */
const exportTimeoutMs = 10_000;
/** Maximum milliseconds that shutdown waits for the last spans. */
const flushMs = 2000;
/** Maximum characters of an attribute. Ours are shorter; this bounds the ones from OTEL_… variables. */
const maxValueCharacters = 256;

/**
 * Starts tracing.
 *
 * @param instanceId distinguishes servers and their restarts
 */
export function openTracing(
  settings: TraceSettings,
  { logger, instanceId }: { readonly logger: Logger; readonly instanceId: string },
): OpenTracing {
  const counts = { exported: 0, failed: 0, dropped: 0 };
  const lost = (): number => counts.failed + counts.dropped;
  // The SDK has one handler per process, which would write to standard output by default.
  setGlobalErrorHandler(createFailureReport(logger, lost));
  const processor = new BatchSpanProcessor({
    exporter: createExporter(settings),
    maxQueueSize: maxQueuedSpans,
    maxExportBatchSize: batchSpans,
    scheduledDelayMillis: exportIntervalMs,
    exportTimeoutMillis: exportTimeoutMs,
    selfObsMeterProvider: countSpans(counts),
  });
  const provider = new TracerProvider({
    resource: describeServer(settings, instanceId),
    // Sampling happens before a span begins.
    sampler: new AlwaysOnSampler(),
    spanLimits: { attributeValueLengthLimit: maxValueCharacters },
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer("quantum-safe-playground", settings.serviceVersion);
  const sampler = createSampler(settings.sampling);
  return {
    get counts() {
      return { ...counts, limited: sampler.limited };
    },
    startCall({ method, header, requestId, sinceMs = 0 }) {
      const parent = readParent(header);
      if (!sampler.isChosen(parent && (parent.traceFlags & 1) === 1)) return undefined;
      const name = `${method.parent.typeName}/${method.name}`;
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
      const attributes: Record<string, AttributeValue> = {
        "rpc.system.name": nameSystem(header),
        "rpc.method": name,
        "qsp.request_id": requestId,
      };
      // Without an explicit start, the SDK measures in fractions of milliseconds.
      const begun = sinceMs === 0 ? {} : { startTime: Date.now() - sinceMs };
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes, ...begun }, context);
      return createCallSpan(tracer, span, (error) => {
        const { status, isFault, reason } = describeFailure(error);
        span.setAttribute("rpc.status_code", status);
        if (reason !== undefined) span.setAttribute("error.type", reason);
        if (isFault) span.setStatus({ code: SpanStatusCode.ERROR, message: reason ?? status });
      });
    },
    async close() {
      const timer = Promise.withResolvers<void>();
      const timeout = setTimeout(timer.resolve, flushMs);
      await Promise.race([provider.shutdown().catch(() => {}), timer.promise]);
      clearTimeout(timeout);
    },
  };
}

/** The exporters read OTEL_EXPORTER_OTLP_… variables for every option that is left out. */
function createExporter({ protocol, endpoint }: TraceSettings): SpanExporter {
  const timeoutMillis = exportTimeoutMs;
  if (protocol === "grpc")
    return new GrpcExporter(endpoint === undefined ? {} : { url: endpoint, timeoutMillis });
  // OTLP, "OTLP/HTTP Request": the signal's path is appended to the endpoint's path.
  return new HttpExporter(
    endpoint === undefined ? {} : { url: `${endpoint.replace(/\/$/, "")}/v1/traces`, timeoutMillis },
  );
}

function describeServer({ serviceName, serviceVersion }: TraceSettings, instanceId: string) {
  const own = resourceFromAttributes({
    "service.name": serviceName,
    "service.version": serviceVersion,
    "service.instance.id": instanceId,
  });
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
  return own.merge(detectResources({ detectors: [envDetector] }));
}

/**
 * Parses the caller's trace context (W3C Trace Context, sections 3.2 and 3.3). A malformed one is ignored.
 */
function readParent(header: Headers) {
  const given = header.get("traceparent");
  const parent = given === null ? null : parseTraceParent(given);
  if (parent === null) return undefined;
  const state = header.get("tracestate");
  return { ...parent, isRemote: true, ...(state !== null && { traceState: new TraceState(state) }) };
}
