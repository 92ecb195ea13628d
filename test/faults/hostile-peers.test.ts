/** Our outgoing connections, to unexpected peers. None may end the program. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { endAfterAll } from "../support/at-end.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  type Behaviour,
  endlessPeers,
  quickPeers,
  startHostilePeer,
  waitUntilClosed,
} from "./hostile-peer.ts";

/** A little more than the system's buffers accept from an endless sender. */
const maxTakenBytes = 32 * 1024 * 1024;

describe("ConnectPeer, when the peer", { timeout: 120_000 }, () => {
  const atEnd = endAfterAll();
  let server: RunningServer;
  beforeAll(async () => {
    const dataDir = makeTemporaryDirectory(atEnd);
    server = await startServer({ dataDir });
  });
  afterAll(async () => {
    await server.stop("SIGKILL");
  });

  async function connectTo(behaviour: Behaviour): Promise<unknown> {
    const hostile = await startHostilePeer(behaviour, atEnd);
    const client = createClient(BlockchainService, createGrpcTransport({ baseUrl: server.url }));
    const { peer } = await client.connectPeer({ address: `127.0.0.1:${hostile.port}` });
    await waitUntilClosed(hostile);
    expect(server.process.exitCode).toBeNull();
    expect((await fetch(`${server.url}/livez`)).status).toBe(200);
    expect(hostile.sentBytes()).toBeLessThan(maxTakenBytes);
    return peer?.peerStatus;
  }

  it.each(Object.entries(quickPeers))(
    "%s, answers UNREACHABLE and the server keeps running",
    async (_name, behaviour) => {
      expect(await connectTo(behaviour)).toBe("UNREACHABLE");
    },
  );

  it.concurrent.each(Object.entries(endlessPeers))(
    "%s, answers UNREACHABLE and the server keeps running",
    async (_name, behaviour) => {
      expect(await connectTo(behaviour)).toBe("UNREACHABLE");
    },
  );
});
