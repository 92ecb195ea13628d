/** The client and the traces, with peers that are not what they expect. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, vi } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  allPeers,
  type Behaviour,
  collectEnds,
  endlessPeers,
  maxTakenBytes,
  silent,
  startHostilePeer,
  strangers,
  waitUntilClosed,
} from "./hostile-peer.ts";
import { requireSentence } from "./hostile-server.ts";

const timeout = 300_000;
describe("a verb of the client, before a peer that", { timeout }, () => {
  const atEnd = collectEnds();

  const fail = (args: readonly string[], scheme: string, behaviour: Behaviour) =>
    requireSentence(args, { scheme, behaviour, atEnd });

  it.concurrent.each(Object.entries(allPeers))("%s, ends with one sentence", (_name, behaviour) =>
    fail(["kms", "list"], "http", behaviour),
  );

  it.concurrent.each(Object.entries({ ...strangers, ...silent }))(
    "%s, ends with one sentence over https",
    (_name, behaviour) => fail(["kms", "list"], "https", behaviour),
  );

  it.concurrent.each(Object.entries({ ...strangers, ...endlessPeers }))(
    "%s, ends its stream with one sentence",
    (_name, behaviour) => fail(["chain", "watch"], "http", behaviour),
  );
});

/** Each behaviour of strangers, and some of the others. */
const somePeers = {
  ...strangers,
  ...Object.fromEntries(Object.entries(allPeers).filter((_, index) => index % 5 === 0)),
};

describe.each(["grpc", "http/protobuf"])(
  "a server with a collector over %s that",
  { timeout },
  (protocol) => {
    const atEnd = collectEnds();

    it.concurrent.each(Object.entries(somePeers))("%s, goes on", async (_name, behaviour) => {
      const peer = await startHostilePeer(behaviour, atEnd);
      const collector = ["--otlp-endpoint", `http://127.0.0.1:${peer.port}`, "--otlp-protocol", protocol];
      const dataDir = makeTemporaryDirectory(atEnd);
      const server = await startServer({ dataDir, args: collector });
      const health = createClient(Health, createGrpcTransport({ baseUrl: server.url }));
      await health.check({});
      await vi.waitFor(() => expect(peer.seen()).toBeGreaterThan(0), { timeout: 60_000 });
      await health.check({});
      // It sends the last spans, and waits for the answer for two seconds at most.
      expect(await server.stop()).toMatchObject({ code: 0, signal: null });
      expect(peer.sentBytes()).toBeLessThan(maxTakenBytes);
    });
  },
);

describe("a server whose database is a peer that", { timeout }, () => {
  const atEnd = collectEnds();

  it.concurrent.each(Object.entries({ ...strangers, ...silent }))(
    "%s, does not start, and says why",
    async (_name, behaviour) => {
      const peer = await startHostilePeer(behaviour, atEnd);
      const url = `postgres://u@127.0.0.1:${peer.port}/qsp`;
      const dataDir = makeTemporaryDirectory(atEnd);
      const exit = await runToEnd(["serve", "--port", "0", "--data-dir", dataDir, "--database-url", url]);
      expect(exit.stderr).toMatch(/^qsp: [^\n]+\n$/);
      expect([2, 4]).toContain(exit.code);
      await waitUntilClosed(peer);
    },
  );
});
