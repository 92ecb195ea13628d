/** Outgoing HTTP/2 connections to servers that close them while they are being checked. */
import { once } from "node:events";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { OutgoingConnection } from "../../src/http/outgoing-connection.ts";

/** An HTTP/2 frame (RFC 9113, section 4.1). */
const frame = (type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
};
const types = { headers: 1, settings: 4, ping: 6, goaway: 7 };
/** ":status: 200" is entry 8 of the static table (RFC 7541, appendix A); END_STREAM and END_HEADERS. */
const answer = (stream: number): Buffer => frame(types.headers, 5, stream, Buffer.of(0x88));

/** A server that answers each request, and does something else instead of answering a ping. */
async function serve(onPing: (socket: net.Socket) => void) {
  let connections = 0;
  const server = net.createServer((socket) => {
    connections += 1;
    socket.on("error", () => {});
    socket.write(frame(types.settings, 0, 0));
    let rest = Buffer.alloc(0);
    let isPrefaced = false;
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      if (!isPrefaced && rest.length >= 24) {
        rest = rest.subarray(24);
        isPrefaced = true;
      }
      while (isPrefaced && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const type = rest.readUInt8(3);
        if (type === types.headers) socket.write(answer(rest.readUInt32BE(5)));
        if (type === types.ping) onPing(socket);
        rest = rest.subarray(9 + rest.readUIntBE(0, 3));
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, countConnections: () => connections };
}

describe("a connection that was silent", () => {
  // GOAWAY without an error, and the end of the socket: no event reports an error.
  const goaway = frame(types.goaway, 0, 0, Buffer.alloc(8));
  it.each<[string, (socket: net.Socket) => void]>([
    ["ends it", (socket) => socket.end()],
    ["sends GOAWAY and ends it", (socket) => socket.end(goaway)],
    ["resets it", (socket) => socket.resetAndDestroy()],
  ])("is replaced for the next calls if the server %s while it is pinged", async (_, onPing) => {
    const { url, countConnections } = await serve(onPing);
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
    // Concurrent calls share the check, and so does the next one.
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([200, 200, 200]);
    expect(await ask()).toBe(200);
    expect(countConnections()).toBe(2);
  });

  it("lets a call that waits for the check continue if it is closed locally", async () => {
    const pinged = Promise.withResolvers<void>();
    const { url } = await serve(() => pinged.resolve());
    const connection = new OutgoingConnection(url, { isLongLived: true });
    const first = await connection.request("POST", "/x", {}, {});
    first.resume().end();
    await once(first, "response");
    const laterMs = performance.now() + 60_000;
    vi.spyOn(performance, "now").mockReturnValue(laterMs);
    onTestFinished(() => void vi.restoreAllMocks());
    const waiting = connection.request("POST", "/x", {}, {});
    await pinged.promise;
    connection.abort();
    // It settles: the check ends, and the call starts on a new connection.
    const stream = await waiting;
    stream.close();
    connection.abort();
  });
});
