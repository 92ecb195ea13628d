import { describe, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
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
