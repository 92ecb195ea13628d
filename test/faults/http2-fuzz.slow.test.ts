import { describe, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { readRange, runSequences } from "./fuzz-run.ts";
import { expectUnharmed, type FuzzedKind, startFuzzed } from "./fuzz-server.ts";
import { makeHttp2Sequence } from "./http2-sequences.ts";

const range = readRange({ seed: 20261122, count: 2000 });
/** A handshake costs more than most sequences. */
const tlsRange = { ...range, count: Math.ceil(range.count / 10) };
/** Milliseconds: 100,000 sequences take minutes. */
const timeout = 300_000 + range.count * 60;

const kinds: readonly (FuzzedKind & { readonly name: string })[] = [
  { name: "an open server", auth: "open" },
  { name: "a server that wants tokens", auth: "token" },
  { name: "a server with TLS", auth: "open", isTls: true },
];

describe(`sequences of HTTP/2, seed ${range.seed}`, () => {
  const atEnd = endAfterAll();
  for (const { name, ...kind } of kinds) {
    const { first, count, seed } = kind.isTls === true ? tlsRange : range;
    it(`${count} of them do no harm to ${name}`, { timeout }, async () => {
      const server = await startFuzzed(kind, atEnd);
      const target = { ...server, ...(kind.isTls === true && { alpn: ["h2"] }) };
      await runSequences(target, { first, count, seed }, (random) => makeHttp2Sequence(random, server.api));
      await expectUnharmed(server);
    });
  }
});
