/** An unmodified OpenTelemetry collector, built by go-collector from its own modules. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { findQuietPort } from "../../../test/support/find-quiet-port.ts";

/** An attribute value in OTLP JSON. */
type Value = Readonly<Record<"stringValue" | "intValue", string | undefined>>;
type Attributes = readonly { readonly key: string; readonly value: Value }[];

/** A span in OTLP JSON; kind 2 is a server span, status code 2 an error. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Attributes;
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly events?: readonly { readonly name: string }[];
}

/** The content of one export. */
export interface Batch {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

/** Timeout in milliseconds for a span to arrive. */
const maxWaitMs = 100_000;

/** A running collector. */
export interface Collector {
  /** Endpoints by protocol. */
  readonly urls: Readonly<Record<"grpc" | "http/protobuf", string>>;
  /** Everything received, unchanged. */
  readonly batches: readonly Batch[];
  /** Waits for a matching span. */
  find(isWanted: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  spans(): ReceivedSpan[];
}

/**
 * Builds the collector.
 *
 * @returns its path
 */
export function buildCollector(folder: string): string {
  const path = join(folder, "collector");
  const cwd = join(import.meta.dirname, "go-collector");
  const { status, stderr } = spawnSync("go", ["build", "-o", path, "."], { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return path;
}

/** Starts a collector for one test. */
export async function startCollector(path: string): Promise<Collector> {
  const ports = [await findQuietPort(), await findQuietPort()];
  const [grpc, http] = ports.map((port) => `127.0.0.1:${port}`);
  const child = spawn(path, [grpc ?? "", http ?? ""], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill());
  const ready = Promise.withResolvers<void>();
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
    if (log.includes("Everything is ready")) ready.resolve();
  });
  child.once("exit", (code) => ready.reject(new Error(`the collector ended with ${code}: ${log}`)));
  const batches: Batch[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    batches.push(JSON.parse(line));
    for (const look of waiting) look();
  });
  await ready.promise;
  const spans = (): ReceivedSpan[] =>
    batches.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
  return {
    urls: { grpc: `http://${grpc}`, "http/protobuf": `http://${http}` },
    batches,
    spans,
    find: (isWanted) =>
      new Promise((resolve, reject) => {
        const late = (): void => {
          const names = spans().map(({ name }) => name);
          reject(new Error(`the collector did not receive the span; it has: ${names.join(", ")}`));
        };
        const timer = setTimeout(late, maxWaitMs);
        const look = (): void => {
          const found = spans().find(isWanted);
          if (found === undefined) return;
          waiting.delete(look);
          clearTimeout(timer);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}

/** Converts attributes to an object. */
export function readAttributes(attributes: Attributes): Record<string, string | undefined> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
}
