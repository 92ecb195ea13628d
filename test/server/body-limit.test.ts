import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { streamOf } from "../support/streams.ts";
import { connectProbe, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, jsonRefusalOf, readToEnd } from "./raw.ts";

const maxBytes = 4 * 1024 * 1024;
/** Bytes of a message besides its data: tags and lengths, or JSON. */
const roomBytes = 64;

const atEnd = endAfterAll();
let url: string;
let port: number;
beforeAll(async () => {
  ({ url, port } = await serveProbe({}, {}, { atEnd }));
});

// message-limits.test.ts and refusals.test.ts test the limit of each message.
it.each(protocols)("messages of a stream may exceed the limit together, over %s", async (protocol) => {
  const million = { text: "x".repeat(1024 * 1024) };
  const { url } = await serveProbe({}, { maxMessageBytes: 1_100_000 });
  const items = streamOf(million, million, { text: "end" });
  const { text } = await connectProbe(protocol, url).collect(items);
  expect(text).toHaveLength(2 * 1024 * 1024 + 3);
});

describe.each([
  ["REST", "/probe/ask", "application/json"],
  ["Connect", "/probing.Probe/Ask", "application/proto"],
  ["gRPC", "/probing.Probe/Ask", "application/grpc"],
])("an HTTP/2 stream with a refused body of 8 MiB, by %s,", (_name, path, type) => {
  it("does not stay open: the server reads the rest or resets it", async () => {
    const stream = connectHttp2(url).request({ ":method": "POST", ":path": path, "content-type": type });
    stream.end(Buffer.alloc(2 * maxBytes, "x"));
    stream.resume();
    await once(stream, "close");
    expect(stream.rstCode).toBe(0);
  });
});

describe("an HTTP/1.1 client that closes after its request was refused half read", () => {
  const body = Buffer.from(`{"text":"${"x".repeat(20_000_000)}"}`);
  const length = `content-length: ${body.length}`;
  const heads: [what: string, head: string][] = [
    ["by Connection: close", `POST /probe/ask HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${length}`],
    ["by HTTP/1.0", `POST /probe/ask HTTP/1.0\r\nhost: x\r\n${length}`],
    ["for an RPC path", `POST /probing.Probe/Ask HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${length}`],
    ["for an unknown path", `POST /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${length}`],
  ];
  /** Sends a request, but a part of its body only later. */
  const sendPart = async (port: number, head = heads[0]?.[1]) => {
    const socket = connectTcp(port, true);
    socket.write(`${head}\r\ncontent-type: application/json\r\n\r\n`);
    socket.write(body.subarray(0, maxBytes + roomBytes));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    await once(socket, "end");
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    return socket;
  };

  it.each(heads)("reads its answer after sending everything: %s", async (_what, head) => {
    const socket = connectTcp(port);
    const failed = vi.fn();
    socket.on("error", failed);
    socket.write(`${head}\r\ncontent-type: application/json\r\n\r\n`);
    await new Promise((resolve) => socket.write(body, resolve));
    const answer = await readToEnd(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ message: expect.any(String) });
    expect(failed).not.toHaveBeenCalled();
  });

  it("sees the connection end at its answer, and can take its time to close its own half", async () => {
    const socket = await sendPart(port);
    await new Promise<void>((resolve) => socket.end(body.subarray(maxBytes + roomBytes), resolve));
    expect(await once(socket, "close")).toEqual([false]);
  });

  it("is dropped if it sends nothing more and does not close", async () => {
    const { port, server } = await serveProbe({}, { maxDrainMs: 600_000 });
    await sendPart(port);
    // Ends when all connections are closed.
    await server.close();
  });
});

it("a small message that expands to more than 4 MiB is refused in a Connect GET", async () => {
  const message = gzipSync(Buffer.alloc(8 * 1024 * 1024)).toString("base64url");
  const query = `connect=v1&encoding=proto&compression=gzip&base64=1&message=${message}`;
  const answer = await fetch(`${url}/probing.Probe/Look?${query}`);
  expect(jsonRefusalOf(await answer.text()).reason).toBe("BODY_TOO_LARGE");
});

// Neither is valid, so an error about its content would show that it had been decoded.
it.each([
  ["in a Connect GET", "Look?connect=v1&encoding=json&message=", "x", 1024, "JSON_INVALID"],
  ["in base64", "Look?connect=v1&encoding=proto&base64=1&message=", "!", 1368, "MESSAGE_MALFORMED"],
  ["of REST", undefined, "%", 1024, "TARGET_INVALID"],
])("a message in a target has the limit of its call: %s", async (_, rpc, character, longest, reason) => {
  const { url } = await serveProbe({}, { maxMessageBytes: 1024 });
  const base = rpc === undefined ? `${url}/probe/look?` : `${url}/probing.Probe/${rpc}`;
  const reasonOf = async (length: number) =>
    jsonRefusalOf(await (await fetch(base + character.repeat(length))).text()).reason;
  expect(await reasonOf(longest)).toBe(reason);
  expect(await reasonOf(longest + 1)).toBe("BODY_TOO_LARGE");
});
