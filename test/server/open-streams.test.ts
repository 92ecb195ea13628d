import { once } from "node:events";
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { serve } from "./serve.ts";

/** An empty JSON message in the envelope that streams have: flags, length, message. */
const emptyMessage = Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]);

describe("a stream that has nothing to tell yet", () => {
  it.each([
    ["Connect", "application/connect+json"],
    ["gRPC-Web", "application/grpc-web+json"],
  ])("is open for who watches it over %s and HTTP/1.1", async (_protocol, type) => {
    const silent: Partial<ServiceImpl<typeof BlockchainService>> = {
      // biome-ignore lint/correctness/useYield: it never comes to that
      async *watchBlocks(_req, { signal }) {
        await once(signal, "abort");
      },
    };
    const { server, url } = await serve({
      services: [
        createServiceImplSpec<typeof BlockchainService>(
          BlockchainService,
          silent as ServiceImpl<typeof BlockchainService>,
        ),
      ],
    });
    onTestFinished(() => {
      server.destroy();
      return server.close();
    });
    const watching = await fetch(`${url}/blockchain.BlockchainService/WatchBlocks`, {
      method: "POST",
      headers: { "content-type": type },
      body: emptyMessage,
    });
    expect(watching.status).toBe(200);
    await watching.body?.cancel();
  });
});
