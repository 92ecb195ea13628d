/** Callers who disconnect while their token is checked: no call starts that nothing would end. */
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { setTimeout } from "node:timers/promises";
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { connectHttp2, envelope, readStream } from "./raw.ts";
import { serve } from "./serve.ts";

/**
 * Serves streams of blocks that last until their caller disconnects. The test decides when a token has been
 * checked.
 */
async function startWatched() {
  const checking = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const running = new Set<AbortSignal>();
  const begun: AbortSignal[] = [];
  /** How often the server checked whether stream callers still have access. */
  let checks = 0;
  const check = async (): Promise<void> => {
    checks += 1;
  };
  const chain: Partial<ServiceImpl<typeof BlockchainService>> = {
    // biome-ignore lint/correctness/useYield: it sends no block
    async *watchBlocks(_request, { signal }) {
      begun.push(signal);
      running.add(signal);
      if (!signal.aborted) await once(signal, "abort");
      running.delete(signal);
    },
  };
  const { port } = await serve({
    services: [createServiceImplSpec<typeof BlockchainService>(BlockchainService, chain)],
    access: {
      mode: "token",
      authenticate: async (authorization) => {
        if (authorization === "slowly") {
          checking.resolve();
          await release.promise;
        }
        return {
          role: "user",
          subject: "ada",
          issuedAt: new Date(0),
          expiresAt: new Date(8.64e15),
          revocation: { group: "ada", check },
        };
      },
    },
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    port,
    url,
    checking: checking.promise,
    release: release.resolve,
    running,
    begun,
    checks: () => checks,
  };
}

type Watched = Awaited<ReturnType<typeof startWatched>>;

const restPath = "/api/blockchain/chain/watch";
const rpcPath = "/blockchain.BlockchainService/WatchBlocks";
const types = ["application/grpc", "application/connect+proto", "application/grpc-web+proto"] as const;

function requestHttp2(
  session: http2.ClientHttp2Session,
  type: string | undefined,
  extra = {},
): http2.ClientHttp2Stream {
  const stream = session.request({
    ...(type === undefined
      ? { ":path": restPath }
      : { ":method": "POST", ":path": rpcPath, "content-type": type, te: "trailers" }),
    ...extra,
  });
  stream.on("error", () => {});
  return type === undefined ? stream : stream.end(envelope(new Uint8Array()));
}

/** The bytes of an HTTP/1.1 request. */
function renderHttp1(type: string | undefined): Buffer {
  const authorization = "host: localhost\r\nauthorization: slowly\r\n";
  return type === undefined
    ? Buffer.from(`GET ${restPath} HTTP/1.1\r\n${authorization}\r\n`)
    : Buffer.concat([
        Buffer.from(
          `POST ${rpcPath} HTTP/1.1\r\n${authorization}content-type: ${type}\r\ncontent-length: 5\r\n\r\n`,
        ),
        envelope(new Uint8Array()),
      ]);
}

/**
 * Expects that a later call is the only one running, and that the server watches no caller once it has ended.
 */
async function expectOnlyLater(watched: Watched): Promise<void> {
  const session = connectHttp2(watched.url);
  const later = requestHttp2(session, "application/grpc");
  await expect.poll(() => watched.begun.filter(({ aborted }) => !aborted)).toHaveLength(1);
  await expect.poll(() => watched.running.size).toBe(1);
  later.close(http2.constants.NGHTTP2_CANCEL);
  await expect.poll(() => watched.running.size).toBe(0);
  await expectNobodyWatched(watched);
}

async function expectNobodyWatched({ checks }: Watched): Promise<void> {
  const before = checks();
  // Two poll intervals: with nobody to watch, the server does not poll.
  await setTimeout(1200);
  expect(checks()).toBe(before);
}

describe("a caller who disconnects while the token is checked", () => {
  const forms = [["REST", undefined], ...types.map((type) => [type, type] as const)] as const;

  it.each(forms)("leaves no call behind over HTTP/2: %s", async (_form, type) => {
    const watched = await startWatched();
    const session = connectHttp2(watched.url);
    const stream = requestHttp2(session, type, { authorization: "slowly" });
    await watched.checking;
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await once(stream, "close");
    // Once it has answered a later ping on the same connection, the server has read the reset.
    await new Promise<void>((resolve) => void session.ping(() => resolve()));
    watched.release();
    await expectOnlyLater(watched);
  });

  it.each(forms.filter(([, type]) => type !== "application/grpc"))(
    "leaves no call behind over HTTP/1.1: %s",
    async (_form, type) => {
      const watched = await startWatched();
      const socket = net.connect(watched.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(renderHttp1(type));
      await watched.checking;
      socket.resetAndDestroy();
      // A later connection has been served, so the server has seen the end of the earlier one.
      await (await fetch(`${watched.url}/livez`)).text();
      watched.release();
      await expectOnlyLater(watched);
    },
  );
});

describe("a stream whose deadline has passed before it begins", () => {
  it.each(types)("leaves nobody to watch: %s", async (type) => {
    const watched = await startWatched();
    const stream = requestHttp2(connectHttp2(watched.url), type, {
      "grpc-timeout": "0m",
      "connect-timeout-ms": "0",
    });
    const { headers, trailers, body } = await readStream(stream);
    expect(`${headers["grpc-status"]} ${trailers["grpc-status"]} ${body}`).toMatch(/\b4\b|deadline_exceeded/);
    expect(watched.running.size).toBe(0);
    await expectNobodyWatched(watched);
  });
});
