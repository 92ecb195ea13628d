/**
 * Many requests at once on one connection: what costs a client next to nothing must not occupy the server.
 */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { flags, frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { serveProbe } from "./probe.ts";
import { connectTcp, exchangeBytes, readToEnd } from "./raw.ts";
import { requestHttp1, shakeHands, startTlsServer } from "./tls-clients.ts";

/** Counts the calls that reach the handler. */
async function startCounting() {
  let calls = 0;
  const { port } = await serveProbe({
    look: async ({ text }) => {
      calls += 1;
      return { text };
    },
  });
  return { port, countCalls: () => calls };
}

const get = "GET /probe/look?text=x HTTP/1.1\r\nhost: localhost\r\n\r\n";

describe("an HTTP/1.1 pipeline", () => {
  it("is answered up to 100 requests, and ends with the last answer", async () => {
    const { port, countCalls } = await startCounting();
    const text = await exchangeBytes(port, get.repeat(300));
    const answers = text.split("HTTP/1.1 200").slice(1);
    expect([answers.length, countCalls()]).toEqual([100, 100]);
    expect(answers.filter((answer) => /^connection: close/im.test(answer))).toEqual([answers.at(-1)]);
  });

  it("continues indefinitely if its client reads the answers", async () => {
    const { port } = await startCounting();
    const socket = connectTcp(port);
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    for (let sent = 50; sent <= 300; sent += 50) {
      socket.write(get.repeat(50));
      await expect.poll(() => text.split("HTTP/1.1 200").length - 1).toBe(sent);
    }
    socket.end();
  });

  const upgrade = (protocol: string): string =>
    `host: localhost\r\nconnection: upgrade\r\nupgrade: ${protocol}`;
  const postHead = "POST /probe/ask HTTP/1.1\r\ncontent-type: application/json\r\n";
  it.each([
    ["a GET", `GET /probe/look HTTP/1.1\r\n${upgrade("x")}\r\n\r\n`],
    ["a WebSocket", `GET /probe/look HTTP/1.1\r\n${upgrade("websocket")}\r\n\r\n`],
    [
      "HTTP/2",
      "GET /probe/look HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade, HTTP2-Settings\r\n" +
        "upgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n",
    ],
    ["a body", `${postHead}${upgrade("x")}\r\ncontent-length: 2\r\n\r\n{}`],
    ["chunks", `${postHead}${upgrade("x")}\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ])("ends with the answer to an upgrade request: %s", async (_what, text) => {
    const { port, countCalls } = await startCounting();
    for (const before of ["", get]) {
      const earlier = before === "" ? 0 : 1;
      const calls = countCalls();
      const answers = (await exchangeBytes(port, before + text + get + get)).split("HTTP/1.1 ").slice(1);
      expect(answers.map((answer) => answer.slice(0, 3))).toEqual(Array(earlier + 1).fill("200"));
      expect(answers.filter((answer) => /^connection: close/im.test(answer))).toEqual([answers.at(-1)]);
      expect(countCalls() - calls).toBe(earlier + (text.startsWith("GET") ? 1 : 0));
    }
  });

  it("ignores what follows an upgrade request in another segment", async () => {
    const release = Promise.withResolvers<object>();
    let calls = 0;
    const { port } = await serveProbe({
      look: () => {
        calls += 1;
        return release.promise;
      },
    });
    const socket = connectTcp(port);
    const text = readToEnd(socket);
    socket.write(`GET /probe/look HTTP/1.1\r\n${upgrade("x")}\r\n\r\n`);
    await expect.poll(() => calls).toBe(1);
    socket.write(get.repeat(2));
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
    release.resolve({});
    expect((await text).match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200"]);
    expect(calls).toBe(1);
  });

  it("does not end a server whose TLS connection it pauses", { timeout: 180_000 }, async () => {
    const server = await startTlsServer();
    const body = "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    for (let i = 0; i < 3; i += 1) {
      const socket = await shakeHands(server, { ALPNProtocols: ["http/1.1"] });
      socket.write(`POST /api/auth/token HTTP/1.1\r\nhost: localhost\r\n${body}`.repeat(1500));
      const text = await readToEnd(socket);
      // Each lacks a username. The end of a connection can reach a client that is still sending before the
      // answers do.
      expect(text.split("HTTP/1.1 400").length).toBeLessThanOrEqual(101);
    }
    expect((await requestHttp1(server, "/livez")).status).toBe(200);
  });
});

it("HTTP/2 streams that their client resets at once end the connection after about 200", async () => {
  const { port, countCalls } = await startCounting();
  const fields = { ":method": "GET", ":path": "/probe/look?text=x", "content-type": undefined };
  const streams = Array.from({ length: 2000 }, (_, i) => [
    encodeHead(2 * i + 1, fields, flags.endStream),
    writeFrame(frameTypes.rstStream, 0, 2 * i + 1, writeUint32(8)),
  ]);
  const socket = connectTcp(port);
  socket.write(Buffer.concat([opening, ...streams.flat()]));
  socket.resume();
  await once(socket, "close");
  expect(countCalls()).toBeLessThan(400);
});
