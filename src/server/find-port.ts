/** Finds a port before the server needs it. */
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Checks that a port is free; returns the port, or a free one if `port` is 0. Another program may take it
 * right after.
 *
 * @throws the system error if this program cannot listen there
 */
export async function findPort(port: number, host: string): Promise<number> {
  const probe = createServer((socket) => socket.destroy()).listen(port, host);
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address !== null ? address.port : port;
}
