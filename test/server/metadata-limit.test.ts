import { once } from "node:events";
import type http2 from "node:http2";
import { beforeAll, describe, expect, it } from "vitest";
import { startProbe } from "./probe.ts";
import { connectHttp2, envelope, exchangeBytes, grpcStatusOf, jsonRefusalOf, request } from "./raw.ts";

let url: string;
let port: number;
beforeAll(async () => {
  const probe = await startProbe();
  url = probe.url;
  port = probe.port;
  return probe.end;
});

const tooLarge = "METADATA_TOO_LARGE";

/** Protocol, path, content type, body, and how its refusal reads. */
const forms = [
  ["REST", "/probe/ask", "application/json", "{}", 431],
  ["REST at an unknown path", "/nothing", "application/json", "{}", 431],
  ["Connect", "/probing.Probe/Ask", "application/proto", "", 431],
  ["Connect with JSON", "/probing.Probe/Ask", "application/json", "{}", 431],
  ["gRPC", "/probing.Probe/Ask", "application/grpc", envelope(""), 200],
  ["gRPC with JSON", "/probing.Probe/Ask", "application/grpc+json", envelope("{}"), 200],
  ["a gRPC stream", "/probing.Probe/Watch", "application/grpc", envelope(""), 200],
  ["gRPC-Web", "/probing.Probe/Ask", "application/grpc-web+proto", envelope(""), 200],
] as const;

describe.each(forms)("metadata of %s over HTTP/2", (_name, path, type, body, refusedStatus) => {
  const send = (session: http2.ClientHttp2Session, bytes: number) =>
    request(session, { ":path": path, "content-type": type, ...makeMetadata(bytes) }, body);

  it.each([4500, 16_000])("passes with a token of %i characters", async (bytes) => {
    const answer = await send(connectHttp2(url), bytes);
    expect(answer.status).toBe(path === "/nothing" ? 404 : 200);
  });

  it.each([17_000, 40_000, 70_000, 100_000])(
    "of %i bytes is refused, and the connection goes on",
    async (bytes) => {
      const session = connectHttp2(url);
      await once(session, "remoteSettings");
      const answer = await send(session, bytes);
      expect(answer.status).toBe(refusedStatus);
      if (refusedStatus === 200) expect(grpcStatusOf(answer)).toEqual({ status: 8, reason: tooLarge });
      else expect(jsonRefusalOf(answer.body).reason).toBe(tooLarge);
      expect((await send(session, 100)).status).toBe(path === "/nothing" ? 404 : 200);
    },
  );
});

const http1Forms = forms.filter(
  ([name]) => !name.startsWith("gRPC with JSON") && !/^(a )?gRPC( stream)?$/.test(name),
);
describe.each(http1Forms)("metadata of %s over HTTP/1.1", (_name, path, type, body, refusedStatus) => {
  const send = (bytes: number) =>
    exchangeBytes(
      port,
      Buffer.concat([
        Buffer.from(
          `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: ${type}\r\n` +
            `content-length: ${body.length}\r\nauthorization: Bearer ${"x".repeat(bytes)}\r\n\r\n`,
        ),
        Buffer.from(body),
      ]),
    );

  it.each([4500, 16_000])("passes with a token of %i characters", async (bytes) => {
    expect(await send(bytes)).toMatch(path === "/nothing" ? /^HTTP\/1.1 404 / : /^HTTP\/1.1 200 /);
  });

  it.each([17_000, 40_000, 70_000, 100_000])("of %i bytes is refused", async (bytes) => {
    const answer = await send(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${refusedStatus} `));
    expect(answer).toMatch(refusedStatus === 200 ? /\r\ngrpc-status: 8\r\n/ : /METADATA_TOO_LARGE/);
  });

  it("of 200,000 bytes is answered with 431 before it has been read", async () => {
    const answer = await send(200_000);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
    expect(jsonRefusalOf(answer.slice(answer.indexOf("\r\n\r\n"))).reason).toBe(tooLarge);
  });
});

describe("metadata", () => {
  it("is counted in many small fields as well", async () => {
    const fields = Object.fromEntries(
      Array.from({ length: 1000 }, (_, index) => [`x-field-${index}`, "0123456789"]),
    );
    const answer = await request(connectHttp2(url), { ":path": "/probe/look", ...fields });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([431, tooLarge]);
  });

  it("is counted in the path as well", async () => {
    const path = `/probe/look?text=${"x".repeat(20_000)}`;
    const answer = await request(connectHttp2(url), { ":path": path });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([431, tooLarge]);
    const over1 = await exchangeBytes(port, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(over1).toMatch(/^HTTP\/1.1 431 /);
  });

  it.each([17_000, 100_000, 120_000])("of %i bytes harms no other call of the connection", async (bytes) => {
    const session = connectHttp2(url);
    const other = await openChat(session);
    expect((await request(session, { ":path": "/probe/look", ...makeMetadata(bytes) })).status).toBe(431);
    expect(await other.say()).toBe(true);
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
  });

  it.each([
    ["140,000 bytes", makeMetadata(140_000)],
    ["300,000 bytes that compression makes small", { "x-same": Array<string>(100).fill("x".repeat(3000)) }],
    ["3,000 fields", { "x-same": Array<string>(3000).fill("x") }],
  ])("of %s has its stream reset, and harms no other call of the connection", async (_what, headers) => {
    const session = connectHttp2(url);
    await once(session, "remoteSettings");
    const other = await openChat(session);
    const call = request(session, { ":path": "/probe/look", ...headers });
    await expect(call).rejects.toThrow("NGHTTP2_ENHANCE_YOUR_CALM");
    expect(await other.say()).toBe(true);
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
  });

  // What Node's HTTP/2 library, nghttp2, takes for an attack: a field of more than 65,536 bytes
  // (NGHTTP2_HD_MAX_NV), and more than 8 CONTINUATION frames (NGHTTP2_DEFAULT_MAX_CONTINUATIONS).
  it.each([
    ["one field of 100,000 bytes", { "x-large": "x".repeat(100_000) }],
    ["200,000 bytes in several fields", makeMetadata(200_000)],
  ])("in %s ends the connection, and harms no other connection", async (_what, headers) => {
    const session = connectHttp2(url);
    const other = await openChat(connectHttp2(url));
    await openChat(session);
    const ended = new Promise((resolve) => session.on("close", resolve));
    await expect(request(session, { ":path": "/probe/look", ...headers })).rejects.toThrow();
    await ended;
    expect(await other.say()).toBe(true);
  });
});

/** Fields of 10,000 bytes each: a single one may have 65,536 at most. */
function makeMetadata(bytes: number): Record<string, string> {
  const count = Math.ceil(bytes / 10_000);
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      index === 0 ? "authorization" : `x-field-${index}`,
      "x".repeat(Math.floor(bytes / count)),
    ]),
  );
}

/** Opens a conversation and says something, and can say something again. */
async function openChat(session: http2.ClientHttp2Session): Promise<{ say(): Promise<boolean> }> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/probing.Probe/Chat",
    "content-type": "application/grpc",
  });
  stream.on("error", () => {}); // Its connection ends with the test.
  const answers = stream[Symbol.asyncIterator]();
  const say = async () => {
    stream.write(envelope(""));
    return !(await answers.next()).done;
  };
  await say();
  return { say };
}
