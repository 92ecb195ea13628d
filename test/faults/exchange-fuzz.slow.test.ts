/** Exchanges without protocols: handlers use them in any order, while clients send anything. */
import { describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { makeHttp1Exchanges, makeHttp2Exchanges } from "./exchange-sequences.ts";
import { startScripted } from "./exchange-server.ts";
import { readRange, runSequences } from "./fuzz-run.ts";

const versions = [
  { name: "HTTP/1.1", make: makeHttp1Exchanges, seed: 20261126 },
  { name: "HTTP/2", make: makeHttp2Exchanges, seed: 20261127 },
] as const;

for (const { name, make, seed } of versions) {
  const range = readRange({ seed, count: 800 });
  /** In milliseconds: 100,000 sequences take minutes. */
  const timeout = 300_000 + range.count * 60;

  describe(`exchanges over ${name}, seed ${range.seed}`, () => {
    const atEnd = endAfterAll();

    it(`${range.count} sequences leak nothing and throw nothing`, { timeout }, async () => {
      const server = await startScripted(atEnd);
      await runSequences(server, range, make);
      await expect
        .poll(() => server.held(), { timeout: 60_000 })
        .toEqual({ exchanges: 0, connections: 0, reads: 0, bodies: 0, scripts: 0 });
      expect(server.findEnd()).toBeUndefined();
      expect(server.served()).toBeGreaterThan(range.count / 2);
      expect(await (await fetch(`http://127.0.0.1:${server.port}/livez`)).text()).toBe("alive\n");
      await server.drain();
    });
  });
}
