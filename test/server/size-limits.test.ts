/** The limits of messages and of metadata. */
import { once } from "node:events";
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { streamOf } from "../support/streams.ts";
import { decodeFrames, type RawFrame } from "./frames.ts";
import { connectProbe, headOf, protocols, serveProbe } from "./probe.ts";
import {
  connectHttp2,
  connectTcp,
  envelope,
  exchangeBytes,
  grpcStatusOf,
  jsonRefusalOf,
  readToEnd,
  request,
  requestHttp1,
} from "./raw.ts";

const maxBytes = 4 * 1024 * 1024;

/** Bytes of a message besides its data: tags and lengths, or JSON. */
const roomBytes = 64;
const atEnd = endAfterAll();
let url: string;
let port: number;
beforeAll(async () => {
  ({ url, port } = await serveProbe({}, {}, { atEnd }));
});
// test/message-limits and refusals.test.ts test the limit of each message.
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

beforeAll(async () => {
  ({ url, port } = await serveProbe({}, {}, { atEnd }));
});

const tooLarge = "METADATA_TOO_LARGE";
// refusals.test.ts tests how each protocol reports it.
describe("metadata", () => {
  const send = (session: http2.ClientHttp2Session, bytes: number) =>
    request(session, { ...headOf("Ask"), ...makeMetadata(bytes) }, envelope(""));
  const sendOver1 = (bytes: number) =>
    requestHttp1(`${url}/probe/look`, { headers: { authorization: `Bearer ${"x".repeat(bytes)}` } });

  const longPath = `/probe/look?text=${"x".repeat(20_000)}`;
  const names = Array.from({ length: 150 }, (_, index) => `x-field-${index}`);
  const small = Object.fromEntries(names.map((name) => [name, "0123456789".repeat(10)]));

  it.each([4500, 16_000])("is accepted with a token of %i characters", async (bytes) => {
    expect((await send(connectHttp2(url), bytes)).trailers["grpc-status"]).toBe("0");
    expect((await sendOver1(bytes)).status).toBe(200);
  });

  it.each([17_000, 70_000, 100_000])("of %i bytes is refused, and the connection works on", async (bytes) => {
    const session = connectHttp2(url);
    await once(session, "remoteSettings");
    expect(grpcStatusOf(await send(session, bytes))).toEqual({ status: 8, reason: tooLarge });
    expect((await send(session, 100)).trailers["grpc-status"]).toBe("0");
    expect((await sendOver1(bytes)).status).toBe(431);
  });

  it.each([
    ["200,000 bytes over HTTP/1.1", () => sendOver1(200_000)],
    ["150 small fields", () => request(connectHttp2(url), { ":path": "/probe/look", ...small })],
    ["a long path", () => request(connectHttp2(url), { ":path": longPath })],
    ["a long path over HTTP/1.1", () => requestHttp1(`${url}${longPath}`)],
  ])("of %s is refused", async (_what, send) => {
    const answer = await send();
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([431, tooLarge]);
  });

  it.each([17_000, 100_000, 120_000])("of %i bytes affects no other call", async (bytes) => {
    const session = connectHttp2(url);
    const other = await openChat(session);
    expect((await request(session, { ":path": "/probe/look", ...makeMetadata(bytes) })).status).toBe(431);
    expect(await other.say()).toBe(true);
  });

  it.each([
    ["140,000 bytes", makeMetadata(140_000)],
    ["300,000 bytes that compression makes small", { "x-same": Array<string>(100).fill("x".repeat(3000)) }],
    ["300 fields", { "x-same": Array<string>(300).fill("x") }],
  ])("of %s has its stream reset, and affects no other call on the connection", async (_what, headers) => {
    const session = connectHttp2(url);
    await once(session, "remoteSettings");
    const other = await openChat(session);
    const call = request(session, { ":path": "/probe/look", ...headers });
    await expect(call).rejects.toThrow("NGHTTP2_ENHANCE_YOUR_CALM");
    expect(await other.say()).toBe(true);
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
  });

  it.each([
    [201, "has 201 header fields; the limit is 200"],
    [1500, "has 1500 header fields"],
    [20_000, "metadata has "],
  ])("of %i fields over HTTP/1.1 is refused with their number", async (fields, text) => {
    // With host and connection.
    const lines = "a:\r\n".repeat(fields - 2);
    const head = `GET /probe/look HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${lines}\r\n`;
    const answer = await exchangeBytes(port, head);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
    expect(answer).toContain(text);
  });

  it("of 201 fields over HTTP/2 is refused with their number", async () => {
    // With :method, :scheme, :authority and :path.
    const headers = { ":path": "/probe/look", "x-same": Array<string>(197).fill("x") };
    const { status, body } = await request(connectHttp2(url), headers);
    expect([status, body.toString()]).toEqual([431, expect.stringContaining("201 header")]);
  });

  // What nghttp2, Node's HTTP/2 library, treats as an attack: a field of more than 65,536 bytes
  // (NGHTTP2_HD_MAX_NV), and more than 8 CONTINUATION frames (NGHTTP2_DEFAULT_MAX_CONTINUATIONS).
  it.each([
    ["one field of 100,000 bytes", { "x-large": "x".repeat(100_000) }],
    ["200,000 bytes in several fields", makeMetadata(200_000)],
  ])("in %s ends the connection, and affects no other connection", async (_what, headers) => {
    const session = connectHttp2(url);
    const other = await openChat(connectHttp2(url));
    await openChat(session);
    const ended = new Promise((resolve) => session.on("close", resolve));
    await expect(request(session, { ":path": "/probe/look", ...headers })).rejects.toThrow();
    await ended;
    expect(await other.say()).toBe(true);
  });
});

describe("metadata that refers to a previously sent field, from a client that acknowledges no settings", () => {
  /**
   * A field of 3,900 bytes for the dynamic table (RFC 7541, section 6.2.1), and one-byte references to it.
   */
  const large = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xbd, 0x1d]), Buffer.alloc(3900, "z")]);
  const call = (id: number, references: number): Buffer => {
    // GET, http, /, and an authority, by the names in the static table.
    const head = [Buffer.from([0x82, 0x86, 0x84, 0x01, 9]), Buffer.from("localhost")];
    if (id === 1) head.push(large);
    return writeFrame(frameTypes.headers, 5, id, Buffer.concat([...head, Buffer.alloc(references, 0xbe)]));
  };
  /** Sends calls, and reads the frames until the connection ends or `lastId` is answered. */
  const send = async (references: number, calls: number, lastId: number | undefined) => {
    const socket = connectTcp(port);
    const ids = Array.from({ length: calls }, (_, index) => 2 * index + 1);
    socket.write(Buffer.concat([opening, ...ids.map((id) => call(id, references))]));
    const arrived: Buffer[] = [];
    let frames: RawFrame[] = [];
    for await (const bytes of socket) {
      arrived.push(bytes);
      frames = decodeFrames(Buffer.concat(arrived)).filter(({ type }) => type !== frameTypes.settings);
      if (frames.at(-1)?.streamId === lastId) break;
    }
    return frames.map(({ type, payload }) => [type, payload.readUInt32BE(payload.length > 4 ? 4 : 0)]);
  };
  const calm = http2.constants.NGHTTP2_ENHANCE_YOUR_CALM;

  it("has its stream reset if it refers to more fields than a request may have", async () => {
    expect(await send(1000, 50, 99)).toEqual(Array(50).fill([frameTypes.rstStream, calm]));
  });

  it("ends the connection if it refers to more bytes than the settings allow", async () => {
    const frames = await send(100, 50, undefined);
    expect(frames).toContainEqual([frameTypes.goaway, calm]);
    expect(frames.filter(([type]) => type === frameTypes.headers)).toEqual([]);
  });
});

/** Fields of 10,000 bytes each: a single one may have 65,536 at most. */
function makeMetadata(bytes: number): Record<string, string> {
  const count = Math.ceil(bytes / 10_000);
  const names = ["authorization", ...Array.from({ length: count - 1 }, (_, index) => `x-field-${index}`)];
  return Object.fromEntries(names.map((name) => [name, "x".repeat(Math.floor(bytes / count))]));
}

/** Opens a bidirectional stream and sends a message; can send more. */
async function openChat(session: http2.ClientHttp2Session): Promise<{ say(): Promise<boolean> }> {
  const stream = session.request(headOf("Chat"));
  stream.on("error", () => {}); // Its connection ends with the test.
  const answers = stream[Symbol.asyncIterator]();
  const say = async () => {
    stream.write(envelope(""));
    return !(await answers.next()).done;
  };
  await say();
  return { say };
}
