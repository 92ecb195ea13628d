/** Serves the plugin's Prometheus metrics at GET /metrics on a loopback port. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import { usageError } from "../../src/cli/exit-codes.ts";

/**
 * Starts the server on 127.0.0.1.
 *
 * @throws CliError if the port is in use
 */
export async function startMetricsServer(registry: Registry, port: number) {
  const server = http.createServer((request, response) => {
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (!isRead || request.url !== "/metrics") return void response.writeHead(404).end();
    registry.metrics().then(
      (text) => {
        response.setHeader("content-type", registry.contentType);
        response.setHeader("x-content-type-options", "nosniff");
        response.end(request.method === "HEAD" ? undefined : text);
      },
      () => response.writeHead(500).end(),
    );
  });
  server.maxConnections = 16;
  server.requestTimeout = 10_000;
  server.listen(port, "127.0.0.1");
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    throw usageError(`--metrics-port ${port} cannot be used (${error.code}); choose a different port`);
  });
  // The address of a TCP server is an object.
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
