import { once } from "node:events";
import { createClient, createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { refusal } from "../support/refusal.ts";
import { connectGrpc } from "./probe.ts";
import { serve } from "./serve.ts";

const ada = { role: "user", subject: "ada", issuedAt: new Date(0), expiresAt: new Date(8.64e15) } as const;

/**
 * A server whose stream sends one block and then waits, and whose callers stay admitted as long as the check
 * passes.
 */
async function serveStream(check: () => void, metrics = createMetrics()) {
  const chain: Partial<ServiceImpl<typeof BlockchainService>> = {
    async *watchBlocks(_req, { signal }) {
      yield {};
      await once(signal, "abort");
    },
  };
  const { url } = await serve({
    services: [createServiceImplSpec<typeof BlockchainService>(BlockchainService, chain)],
    metrics,
    access: {
      mode: "token",
      authenticate: async () => {
        check();
        return { ...ada, revocation: { group: "ada", check: async () => check() } };
      },
    },
  });
  return createClient(BlockchainService, connectGrpc(url));
}

describe("a stream whose caller was admitted", { timeout: 120_000 }, () => {
  it("ends with the reason once the caller is removed", async () => {
    let isRemoved = false;
    const client = await serveStream(() => {
      if (isRemoved) throw refuse("TOKEN_REVOKED", "the user was removed");
    });
    const blocks = client.watchBlocks({})[Symbol.asyncIterator]();
    await blocks.next();
    isRemoved = true;
    expect(await refusal(blocks.next())).toEqual({ code: "Unauthenticated", reason: "TOKEN_REVOKED" });
  });

  it("continues while the check itself fails, and counts the failures", async () => {
    const metrics = createMetrics();
    let checks = 0;
    const checked = Promise.withResolvers<void>();
    const client = await serveStream(() => {
      checks += 1;
      if (checks === 1) return;
      if (checks > 2) checked.resolve();
      throw refuse("STORE_UNAVAILABLE", "the store is away");
    }, metrics);
    const ending = new AbortController();
    const blocks = client.watchBlocks({}, { signal: ending.signal })[Symbol.asyncIterator]();
    await blocks.next();
    const next = refusal(blocks.next());
    await checked.promise;
    ending.abort();
    expect(await next).toMatchObject({ code: "Canceled" });
    const { text } = await metrics.expose();
    expect(text).toMatch(/^qsp_background_failures_total\{work="check_stream_callers"\} [1-9]/m);
  });
});
