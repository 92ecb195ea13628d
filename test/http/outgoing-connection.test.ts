/** Outgoing HTTP/2 connections to servers that close them while they are being checked. */
import { once } from "node:events";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { OutgoingConnection } from "../../src/http/outgoing-connection.ts";
import { createFrameDecoder } from "../server/frames.ts";
import { emptySettings, frameTypes, preface, writeFrame } from "../support/http2-frames.ts";

/** ":status: 200" is entry 8 of the static table (RFC 7541, appendix A); END_STREAM and END_HEADERS. */
const answer = (stream: number): Buffer => writeFrame(frameTypes.headers, 5, stream, Buffer.of(0x88));

/** A server that answers each request, and does something else instead of answering a ping. */
async function serve(onPing: (socket: net.Socket) => void) {
  let connections = 0;
  const server = net.createServer((socket) => {
    connections += 1;
    socket.on("error", () => {});
    socket.write(emptySettings);
    const decode = createFrameDecoder();
    let prefaceBytes = preface.length;
    socket.on("data", (chunk: Buffer) => {
      const frames = decode(chunk.subarray(prefaceBytes));
      prefaceBytes = Math.max(0, prefaceBytes - chunk.length);
      for (const { type, streamId } of frames) {
        if (type === frameTypes.headers) socket.write(answer(streamId));
        if (type === frameTypes.ping) onPing(socket);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, countConnections: () => connections };
}

/** Connects, makes a call, and then lets a minute pass. Returns a function that makes a second call. */
async function connect(url: string) {
  const connection = new OutgoingConnection(url, { isLongLived: true });
  onTestFinished(() => connection.abort());
  const ask = async (): Promise<unknown> => {
    const stream = await connection.request("POST", "/x", {}, {});
    stream.resume().end();
    const [headers] = await once(stream, "response");
    return headers[http2.constants.HTTP2_HEADER_STATUS];
  };
  expect(await ask()).toBe(200);
  const laterMs = performance.now() + 60_000;
  vi.spyOn(performance, "now").mockReturnValue(laterMs);
  onTestFinished(() => void vi.restoreAllMocks());
  return { connection, ask };
}

describe("a connection that was silent", () => {
  // GOAWAY without an error, and the end of the socket: no event reports an error.
  const goaway = writeFrame(frameTypes.goaway, 0, 0, Buffer.alloc(8));
  it.each<[string, (socket: net.Socket) => void]>([
    ["ends it", (socket) => socket.end()],
    ["sends GOAWAY and ends it", (socket) => socket.end(goaway)],
    ["resets it", (socket) => socket.resetAndDestroy()],
  ])("is replaced for the next calls if the server %s while it is pinged", async (_, onPing) => {
    const { url, countConnections } = await serve(onPing);
    const { ask } = await connect(url);
    // Concurrent calls share the check, and so does the next one.
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([200, 200, 200]);
    expect(await ask()).toBe(200);
    expect(countConnections()).toBe(2);
  });

  it("lets a call that waits for the check continue if it is closed locally", async () => {
    const pinged = Promise.withResolvers<void>();
    const { url } = await serve(() => pinged.resolve());
    const { connection } = await connect(url);
    const waiting = connection.request("POST", "/x", {}, {});
    await pinged.promise;
    connection.abort();
    // It settles: the check ends, and the call starts on a new connection.
    (await waiting).close();
  });
});
