/** Servers whose collector misbehaves. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, vi } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import {
  allPeers,
  collectEnds,
  maxTakenBytes,
  selectPeers,
  startHostilePeer,
} from "../../../test/faults/hostile-peer.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const timeout = 300_000;

describe.each(["grpc", "http/protobuf"])(
  "a server with a collector over %s that",
  { timeout },
  (protocol) => {
    const atEnd = collectEnds();

    it.concurrent.each(selectPeers(allPeers))("%s, keeps running", async (_name, behaviour) => {
      const peer = await startHostilePeer(behaviour, atEnd);
      const collector = ["--otlp-endpoint", `http://127.0.0.1:${peer.port}`, "--otlp-protocol", protocol];
      const dataDir = makeTemporaryDirectory(atEnd);
      const server = await startServer({ dataDir, args: collector });
      const health = createClient(Health, createGrpcTransport({ baseUrl: server.url }));
      await health.check({});
      await vi.waitFor(() => expect(peer.seen()).toBeGreaterThan(0), { timeout: 60_000 });
      await health.check({});
      // On shutdown, the server sends the last spans and waits up to two seconds for the answer.
      expect(await server.stop()).toMatchObject({ code: 0, signal: null });
      expect(peer.sentBytes()).toBeLessThan(maxTakenBytes);
    });
  },
);
