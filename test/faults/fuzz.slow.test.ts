/** Fuzzers of HTTP: of the real server, and of exchanges without protocols, which handlers use in any order. */
import { describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { makeHttp1Exchanges, makeHttp2Exchanges } from "./exchange-sequences.ts";
import { startScripted } from "./exchange-server.ts";
import { readRange, runSequences } from "./fuzz-run.ts";
import { expectUnharmed, type FuzzedKind, startFuzzed } from "./fuzz-server.ts";
import { makeHttp1Sequence } from "./http1-sequences.ts";
import { makeHttp2Sequence } from "./http2-sequences.ts";

const versions = [
  { name: "HTTP/1.1", alpn: ["http/1.1"], make: makeHttp1Sequence, seed: 20261121 },
  { name: "HTTP/2", alpn: ["h2"], make: makeHttp2Sequence, seed: 20261122 },
] as const;

const kinds: readonly (FuzzedKind & { readonly name: string })[] = [
  { name: "an open server", auth: "open" },
  { name: "a server with TLS", auth: "open", isTls: true },
  ...(process.env.QSP_TEST_LONG === "1"
    ? [{ name: "a server that requires tokens", auth: "token" } as const]
    : []),
];

for (const { name: version, alpn, make, ...defaults } of versions) {
  const range = readRange({ ...defaults, count: 800 });
  /** A handshake costs more than most sequences. */
  const tlsRange = { ...range, count: Math.ceil(range.count / 10) };
  /** In milliseconds: 100,000 sequences take minutes. */
  const timeout = 300_000 + range.count * 60;

  describe(`${version} sequences, seed ${range.seed}`, () => {
    const atEnd = endAfterAll();
    for (const { name, ...kind } of kinds) {
      const { first, count, seed } = kind.isTls === true ? tlsRange : range;
      it(`${count} of them do not harm ${name}`, { timeout }, async () => {
        const server = await startFuzzed(kind, atEnd);
        const target = { ...server, ...(kind.isTls === true && { alpn }) };
        await runSequences(target, { first, count, seed }, (random) => make(random, server.api));
        await expectUnharmed(server);
      });
    }
  });
}

const exchangeVersions = [
  { name: "HTTP/1.1", make: makeHttp1Exchanges, seed: 20261126 },
  { name: "HTTP/2", make: makeHttp2Exchanges, seed: 20261127 },
] as const;

for (const { name, make, seed } of exchangeVersions) {
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
