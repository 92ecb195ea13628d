/** A server in the process of the test, on a port of its own. */

import { pino } from "pino";
import type { ServerLimits } from "../../src/server/limits.ts";
import type { ServerOptions } from "../../src/server/options.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import { defaultLimits } from "./default-limits.ts";

/** A server that listens. */
export interface LocalServer {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

/** Options of a server, without what most tests do not care about. */
export type BareOptions = Omit<ServerOptions, "logger" | "limits"> & {
  readonly limits?: Partial<ServerLimits>;
};

/** Serves; whoever starts it calls `server.destroy()` or `server.close()`. */
export async function serve(options: BareOptions): Promise<LocalServer> {
  const limits = { ...defaultLimits, ...options.limits };
  const server = await createServer({ logger: pino({ level: "silent" }), ...options, limits });
  const { port } = await server.listen(0, "127.0.0.1");
  return { server, port, url: `http://127.0.0.1:${port}` };
}
