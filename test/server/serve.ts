/** A server in the test process, on its own port. */

import { pino } from "pino";
import { onTestFinished } from "vitest";
import type { ServerLimits } from "../../src/server/limits.ts";
import type { ServerOptions } from "../../src/server/options.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import type { AtEnd } from "../support/at-end.ts";
import { defaultLimits } from "./default-limits.ts";

/** A listening server. */
export interface LocalServer {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

/** Server options, with defaults for everything that most tests do not care about. */
export type BareOptions = Omit<ServerOptions, "logger" | "limits"> &
  Partial<Pick<ServerOptions, "logger">> & { readonly limits?: Partial<ServerLimits> };

/** Serves until the test has finished. */
export async function serve(options: BareOptions, atEnd: AtEnd = onTestFinished): Promise<LocalServer> {
  const limits = { ...defaultLimits, ...options.limits };
  const server = await createServer({ logger: pino({ level: "silent" }), ...options, limits });
  atEnd(() => {
    server.destroy();
    return server.close();
  });
  const { port } = await server.listen(0, "127.0.0.1");
  return { server, port, url: `http://127.0.0.1:${port}` };
}

/** A logger whose lines the test reads. */
export function collectLines(level = "debug") {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { lines, logger: pino({ level }, { write }) };
}
