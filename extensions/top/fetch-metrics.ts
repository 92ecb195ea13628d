/** Fetches a server's metrics. */
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { Code, ConnectError } from "@connectrpc/connect";
import { CliError, exitCodes } from "../../src/cli/exit-codes.ts";
import { parseMetrics } from "../../src/client/prometheus-text.ts";
import type { Snapshot } from "../../src/client/server-activity.ts";

/** Maximum size of the metrics, in bytes. */
const maxBytes = 8 * 1024 * 1024;

/** The server, and how to reach it. */
export interface MetricsSource {
  readonly url: string;
  readonly token: string | undefined;
  /** CA certificates to trust, in PEM. */
  readonly caPem: string | undefined;
  readonly timeoutMs: number;
}

/**
 * Fetches the metrics. Redirects are not followed: they could take the token elsewhere.
 *
 * @throws CliError if the answer contains no metrics
 * @throws ConnectError UNAVAILABLE or DEADLINE_EXCEEDED if the server does not answer
 */
export async function fetchMetrics(source: MetricsSource): Promise<Snapshot> {
  const signal = AbortSignal.timeout(source.timeoutMs);
  try {
    const response = await send(source, signal);
    const text = await readText(response, source.url);
    if (response.statusCode !== 200) throw explainStatus(response.statusCode ?? 0, source.url);
    return { atMs: performance.now(), samples: parseMetrics(text) };
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (signal.aborted) throw new ConnectError("the deadline passed", Code.DeadlineExceeded);
    const message = error instanceof Error ? error.message : String(error);
    throw new ConnectError(message, Code.Unavailable, undefined, undefined, error);
  }
}

function send({ url, token, caPem }: MetricsSource, signal: AbortSignal): Promise<IncomingMessage> {
  const target = new URL("/metrics", url);
  const headers = { accept: "text/plain", ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  return new Promise((resolve, reject) => {
    const request =
      target.protocol === "https:"
        ? requestHttps(target, { headers, signal, ...(caPem !== undefined && { ca: caPem }) })
        : requestHttp(target, { headers, signal });
    request.once("response", resolve);
    // Not `once`: an error may follow the response.
    request.on("error", reject);
    request.end();
  });
}

async function readText(response: IncomingMessage, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes)
      throw new CliError(
        exitCodes.unreachable,
        `${url}/metrics has more than ${maxBytes} bytes; this is not a qsp server`,
      );
  }
  return Buffer.concat(chunks).toString();
}

function explainStatus(status: number, url: string): CliError {
  if (status === 401 || status === 403)
    return new CliError(
      exitCodes.refused,
      `${url}/metrics needs the token of an auditor or admin (HTTP ${status}); log in with qsp login`,
    );
  if (status === 404)
    return new CliError(
      exitCodes.refused,
      `${url} has no /metrics (HTTP 404); start the server without --metrics off, or use the server's own port, not the proxy's`,
    );
  return new CliError(
    exitCodes.unreachable,
    `${url}/metrics answered with HTTP ${status}; name a server with --url`,
  );
}
