import { randomInt } from "node:crypto";
import { findPort } from "../../src/server/find-port.ts";

/**
 * Finds a free port on 127.0.0.1 for a program that cannot choose one itself. Linux gives ports above this range to
 * sockets that ask for any, so no other test takes it before the program listens.
 */
export async function findQuietPort(): Promise<number> {
  for (;;) {
    try {
      return await findPort(randomInt(20_000, 32_768), "127.0.0.1");
    } catch {
      // Taken: try another.
    }
  }
}
