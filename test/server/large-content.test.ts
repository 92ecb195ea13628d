/** Downloads of large content over real sockets, by readers that are slow or leave. */
import { once } from "node:events";
import http from "node:http";
import { createServiceImplSpec } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openContent } from "../../src/http/byte-ranges.ts";
import { Library } from "../gen/testing/library_pb.ts";
import { connectHttp2 } from "./raw.ts";
import { serve } from "./serve.ts";

const piece = Buffer.alloc(64 * 1024, "a");
const pieces = 1000;
const length = pieces * piece.length;

/** Serves content of 64 MB, and counts the pieces that were read from it. */
async function serveContent(announced = length) {
  let read = 0;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const service = createServiceImplSpec<typeof Library>(Library, {
    async *readFile(_request, context) {
      const { from } = openContent(context, { length: announced, tag: '"t"', cacheControl: "no-cache" });
      try {
        for (let at = from; at < length; at += piece.length) {
          read += 1;
          yield { contentType: "text/plain", data: piece };
        }
      } finally {
        end();
      }
    },
  });
  const { url } = await serve({ services: [service] });
  return { url, ended, countRead: () => read };
}

/** A response that is not read yet. */
async function open(url: string): Promise<http.IncomingMessage> {
  const request = http.get(`${url}/v1/files/a`, { agent: new http.Agent({ keepAlive: true }) });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  return response;
}

async function countBytes(source: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const chunk of source) bytes += chunk.length;
  return bytes;
}

it("is read from the store no faster than its reader reads, and completely", async () => {
  const { url, countRead } = await serveContent();
  const slow = await open(url);
  const other = await serveContent();
  // Another download that completes meanwhile shows that the server is not merely slow.
  expect(await countBytes(await open(other.url))).toBe(length);
  const ahead = countRead();
  expect(ahead).toBeLessThan(pieces / 2);
  expect(await countBytes(slow)).toBe(length);
  expect(countRead()).toBe(pieces);
});

describe.each([
  ["HTTP/1.1", open],
  ["HTTP/2", async (url: string) => connectHttp2(url).request({ ":path": "/v1/files/a" })],
] as const)("over %s,", (_version, open) => {
  it("is sent completely to a slow, steady reader", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { url } = await serveContent();
    let bytes = 0;
    for await (const chunk of await open(url)) {
      bytes += chunk.length;
      // 100 seconds in all. The limit for a reader without progress is 20.
      vi.advanceTimersByTime((100 * chunk.length) / piece.length);
    }
    expect(bytes).toBe(length);
  });

  it("is read no further once its reader leaves", async () => {
    const { url, ended, countRead } = await serveContent();
    const stream = await open(url);
    await once(stream, "readable");
    stream.destroy();
    await ended;
    expect(countRead()).toBeLessThan(pieces);
  });
});

it("of more bytes than announced breaks its connection, so that they do not enter the next answer", async () => {
  const { url } = await serveContent(piece.length * 2);
  const response = await open(url);
  const closed = once(response.socket, "close");
  expect(await countBytes(response)).toBe(piece.length * 2);
  await closed;
});

it("of fewer bytes than announced is cut off", async () => {
  const { url } = await serveContent(length + 1);
  await expect(open(url).then(countBytes)).rejects.toThrow("aborted");
});
