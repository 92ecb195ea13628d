/** A server in the process of the test, on a port of its own. */
import { pino } from "pino";
import type { ServerOptions } from "../../src/server/options.ts";
import { createServer, type Server } from "../../src/server/server.ts";

/** A server that listens. */
export interface LocalServer {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

/** Serves; whoever starts it calls `server.destroy()` or `server.close()`. */
export async function serve(options: Omit<ServerOptions, "logger">): Promise<LocalServer> {
  const server = await createServer({ logger: pino({ level: "silent" }), ...options });
  const { port } = await server.listen(0, "127.0.0.1");
  return { server, port, url: `http://127.0.0.1:${port}` };
}
