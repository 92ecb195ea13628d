/** Starts a real Envoy with the committed configuration, servers behind it, and clients that trust it. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import type http2 from "node:http2";
import { join } from "node:path";
import tls from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, onTestFinished, vi } from "vitest";
import { type Edge, type EdgeOptions, findEnvoy, startEdge } from "../../envoy/edge.ts";
import { isMissing } from "../interop/tools.ts";
import { connectHttp2 as connectHttp2With } from "../server/raw.ts";
import type { AtEnd } from "../support/at-end.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

/** The access log entry of a request. */
export interface LogLine {
  readonly requestId: string;
  readonly attempts: number;
  readonly route: string;
  readonly upstream: string | null;
  readonly [field: string]: unknown;
}

/** A running Envoy. */
export type TestEdge = Awaited<ReturnType<typeof startTestEdge>>;

/** Test timeout in milliseconds, for several process starts on a busy machine. */
const timeout = 180_000;

/** Polls until the check no longer throws. */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: timeout / 3, interval: 20 });

/**
 * Describes tests that need Envoy and other programs. If one is missing, they are skipped visibly; with
 * QSP_TEST_REQUIRE_ALL=1, they run and fail.
 */
export function describeEdge(name: string, define: () => void, others: readonly string[] = []): void {
  const missing = ["openssl", ...others].filter(isMissing);
  if (process.env.QSP_TEST_REQUIRE_ALL !== "1" && findEnvoy() === undefined) missing.unshift("envoy");
  const isSkipped = missing.length > 0;
  describe.skipIf(isSkipped)(isSkipped ? `${name}: needs ${missing.join(", ")}` : name, { timeout }, define);
}

/** How to start Envoy. */
type TestEdgeOptions = Pick<EdgeOptions, "backends" | "configuration"> &
  Partial<Pick<EdgeOptions, "tlsDirectory">> & {
    /** False if a server is down or unhealthy. */
    readonly areWell?: boolean;
  };

/**
 * Starts Envoy in front of these servers and waits until it considers them healthy. Creates a certificate for it
 * unless one is given.
 */
export async function startTestEdge(
  { areWell = true, ...options }: TestEdgeOptions,
  atEnd: AtEnd = onTestFinished,
) {
  const { tlsDirectory = makeTemporaryDirectory(atEnd) } = options;
  if (options.tlsDirectory === undefined) makeCertificate(tlsDirectory);
  const log: LogLine[] = [];
  const edge = await startEdge({ ...options, tlsDirectory, onLog: (line) => log.push(JSON.parse(line)) });
  atEnd(async () => void (await edge.stop()));
  // A health check that takes more than a second counts as failed.
  if (areWell) await eventually(() => expectWell(edge));
  const caFile = join(tlsDirectory, "ca.crt");
  return {
    ...edge,
    /** The CA that clients trust. */
    ca: readFileSync(caFile),
    caFile,
    tlsDirectory,
    /** The access log so far. */
    log: log as readonly LogLine[],
    /** Waits for the access log entry of a request. */
    logOf: (requestId: string): Promise<LogLine> =>
      eventually(() => {
        const line = log.find((candidate) => candidate.requestId === requestId);
        if (line === undefined) throw new Error(`the log has no ${requestId}`);
        return line;
      }),
  };
}

/** @throws Error if Envoy considers a server unhealthy */
async function expectWell(edge: Edge): Promise<void> {
  const sick = (await listFlags(edge)).filter((line) => !line.endsWith("::healthy"));
  if (sick.length > 0) throw new Error(sick.join("\n"));
}

/** Creates a localhost certificate and installs it like a renewal: the key first, by rename. */
export function makeCertificate(directory: string): void {
  const draft = join(directory, "draft");
  mkdirSync(draft, { recursive: true });
  const [ca, caKey] = [join(directory, "ca.crt"), join(directory, "ca.key")];
  if (!existsSync(ca)) makeKeyAndCertificate(caKey, ca, ["-subj", "/CN=CA of a test"]);
  makeKeyAndCertificate(join(draft, "gateway.key"), join(draft, "gateway.crt"), [
    ...["-CA", ca, "-CAkey", caKey, "-subj", "/CN=localhost"],
    ...["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"],
  ]);
  for (const file of ["gateway.key", "gateway.crt"]) renameSync(join(draft, file), join(directory, file));
}

function makeKeyAndCertificate(key: string, certificate: string, flags: readonly string[]): void {
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const files = ["-keyout", key, "-out", certificate];
  execFileSync("openssl", ["req", "-x509", ...kind, ...files, ...flags], { stdio: "ignore" });
}

/** Starts the real program like a server behind Envoy. */
export async function startBackend(
  atEnd: AtEnd = onTestFinished,
  args: readonly string[] = [],
  dataDir: string = makeTemporaryDirectory(atEnd),
): Promise<RunningServer> {
  const flags = ["--max-metadata-bytes", "17408", "--log-level", "error", ...args];
  const server = await startServer({ dataDir, args: flags });
  atEnd(async () => void (await server.stop("SIGKILL")));
  return server;
}

/** An HTTP/2 connection through Envoy, closed at the end of the test. */
export function connectHttp2(
  { url, ca }: Pick<TestEdge, "url" | "ca">,
  options: http2.SecureClientSessionOptions & { readonly localAddress?: string } = {},
): http2.ClientHttp2Session {
  return connectHttp2With(url, { ca, ...options });
}

/** A gRPC client through Envoy, on its own connection, closed at the end of the test. */
export function connectGrpc<S extends DescService>(
  service: S,
  { url, ca }: Pick<TestEdge, "url" | "ca">,
  localAddress = "127.0.0.1",
): Client<S> {
  const at = { host: "127.0.0.1", port: Number(new URL(url).port), servername: "localhost", localAddress };
  const createConnection = (): tls.TLSSocket => tls.connect({ ...at, ca, ALPNProtocols: ["h2"] });
  const sessionManager = new Http2SessionManager(url, {}, { createConnection });
  onTestFinished(() => sessionManager.abort());
  return createClient(service, createGrpcTransport({ baseUrl: url, sessionManager }));
}

/** Envoy's health flags of a server in a cluster, such as "/failed_active_hc"; "healthy" if none are set. */
export async function flagsOf(edge: Edge, cluster: string, authority: string): Promise<string> {
  const prefix = `${cluster}::${authority}::health_flags::`;
  const found = (await listFlags(edge)).find((line) => line.startsWith(prefix));
  return found?.slice(prefix.length) ?? "unknown";
}

/** Envoy's health report, one line per server: "servers::127.0.0.1:8080::health_flags::healthy". */
async function listFlags({ adminUrl }: Edge): Promise<string[]> {
  const text = await (await fetch(`${adminUrl}/clusters`)).text();
  return text.split("\n").filter((line) => line.includes("::health_flags::"));
}
