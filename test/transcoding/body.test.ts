import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { createRegistry } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { IssueTokenRequestSchema } from "#gen/oauth/authorization_service_pb.ts";
import { parseForm } from "../../src/transcoding/form.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { refusal } from "../support/refusal.ts";
import { chunked, type RequestParts, refusalOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";
import { invalid, type RuledRpc, received, serveRules } from "./rules.ts";

const rule: RuledRpc = { post: "/v1", body: "*" };
const post = (parts: RequestParts) => received(rule, "POST /v1", parts);
const maxBytes = 1000;

/** Posts to a server that accepts no more than maxBytes. */
async function postLimited(parts: RequestParts) {
  const { transcoder } = serveRules([rule], {}, { maxBytes });
  return refusalOf(await send(transcoder, "POST /v1", parts));
}

const tooLarge = { status: 413, code: "RESOURCE_EXHAUSTED", reason: "BODY_TOO_LARGE", fields: [] };

/** Each byte as a chunk. */
function byteByByte(bytes: Buffer) {
  return chunked(...Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)));
}

describe("a body", () => {
  it("may arrive in pieces, even split within a character", async () => {
    expect(await post({ body: byteByByte(Buffer.from('{"name":"é🔑"}')) })).toEqual({ name: "é🔑" });
  });

  it.each([
    {},
    { "content-type": "APPLICATION/JSON" },
    { "content-type": "application/json;charset=utf-8" },
    { "content-type": 'application/json ; charset="UTF-8"' },
    { "content-type": "application/json; profile=x" },
    { "content-encoding": "identity" },
  ])("may have %j", async (headers) => {
    expect(await post({ body: '{"name":"a"}', headers })).toEqual({ name: "a" });
  });

  it.each([
    "text/json",
    "application/x-www-form-urlencoded",
    "application/x-ndjson",
    "json",
    "application/json, text/plain",
    "application/json; charset=iso-8859-1",
  ])("may not be %s, and the refusal lists the right types (RFC 9110, section 15.5.16)", async (type) => {
    const parts = { body: '{"name":"a"}', headers: { "content-type": type } };
    const answer = await send(serveRules([rule]).transcoder, "POST /v1", parts);
    expect(refusalOf(answer)).toMatchObject({ status: 415, reason: "MEDIA_TYPE_UNSUPPORTED" });
    expect(answer.headers.get("accept")).toBe("application/json");
  });

  it("of zero bytes may have any media type if no body is needed", async () => {
    const parts = { body: "", headers: { "content-type": "text/plain" } };
    expect(await received({ get: "/v1" }, "GET /v1", parts)).toEqual({});
  });

  it("of raw bytes may not be a part (RFC 9110, section 14.5)", async () => {
    const parts = { body: "{", headers: { "content-range": "bytes 1-1/2" } };
    expect(await received("PUT /v1 body: raw", "PUT /v1", parts)).toEqual(invalid("BODY_INCOMPLETE"));
  });
});

describe("a compressed body", () => {
  const gzip = { "content-encoding": "gzip" };
  const whole = gzipSync('{"name":"a"}');

  it.each(["gzip", "GZIP", " gzip ", "x-gzip"])("may be %j", async (encoding) => {
    expect(await post({ body: whole, headers: { "content-encoding": encoding } })).toEqual({ name: "a" });
  });

  it("may arrive in pieces, and be raw bytes", async () => {
    const body = byteByByte(gzipSync("{"));
    const result = await received("PUT /v1 body: raw", "PUT /v1", { body, headers: gzip });
    expect(result).toEqual({ raw: { contentType: "application/octet-stream", data: "ew==" } });
  });

  it.each(["br", "gzip, gzip", "aws-chunked", "*"])(
    "may not be %s, and the refusal lists the right encodings (RFC 9110, section 12.5.3)",
    async (encoding) => {
      const parts = { body: whole, headers: { "content-encoding": encoding } };
      const answer = await send(serveRules([rule]).transcoder, "POST /v1", parts);
      expect(refusalOf(answer)).toMatchObject({ status: 415, reason: "ENCODING_UNSUPPORTED" });
      expect(answer.headers.get("accept-encoding")).toBe("gzip");
    },
  );

  it.each<[what: string, body: Uint8Array]>([
    ["plain JSON", Buffer.from('{"name":"a"}')],
    ["truncated", whole.subarray(0, -5)],
    ["a wrong checksum", whole.map((byte, index) => (index === whole.length - 6 ? byte ^ 1 : byte))],
  ])("is refused if it is damaged: %s", async (_what, body) => {
    expect(await post({ body, headers: gzip })).toEqual(invalid("ENCODING_INVALID"));
  });

  it("that expands a thousandfold is refused without being decompressed", async () => {
    const body = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const before = process.memoryUsage().arrayBuffers;
    expect(await postLimited({ body, headers: gzip })).toEqual(tooLarge);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });
});

it("a body is refused as soon as too much of it has arrived", async () => {
  const endless = (async function* () {
    for (;;) yield Buffer.alloc(100, 0x20);
  })();
  expect(await postLimited({ body: endless })).toEqual(tooLarge);
});

it("a long upload is not kept in memory once it has been read", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const sent: WeakRef<Uint8Array>[] = [];
  let keptChunks = Number.NaN;
  async function* upload() {
    for (let i = 0; i < 1000; i += 1) {
      const chunk = new Uint8Array(1024);
      sent.push(new WeakRef(chunk));
      yield chunk;
      await new Promise(setImmediate);
    }
    collectGarbage();
    keptChunks = sent.filter((chunk) => chunk.deref() !== undefined).length;
  }
  const transcoder = serveLibrary({
    async writeFile(requests) {
      let totalSize = 0;
      for await (const { cover } of requests) totalSize += cover?.data.length ?? 0;
      return { totalSize };
    },
  });
  const answer = await send(transcoder, "POST /v1/files/a", { body: upload() });
  expect(JSON.parse(answer.text)).toMatchObject({ totalSize: 1000 * 1024 });
  expect(keptChunks).toBeLessThan(100);
});

const readForm = (text: string) =>
  parseForm(IssueTokenRequestSchema, Buffer.from(text), { ...defaultBodyLimits, registry: createRegistry() });
const formRefusal = (text: string) => refusal(Promise.resolve().then(() => readForm(text)));

it("ignores up to 1,000 unknown parameters", () => {
  expect(readForm(`${"%61=%62&".repeat(999)}scope=a+b`).message).toMatchObject({ scope: "a b" });
});

it("refuses more parameters, without decoding the rest", async () => {
  const decode = vi.spyOn(globalThis, "decodeURIComponent");
  onTestFinished(() => decode.mockRestore());
  expect(await formRefusal("%61=%62&".repeat(8000))).toMatchObject({ reason: "MESSAGE_TOO_COMPLEX" });
  expect(decode.mock.calls.length).toBeLessThanOrEqual(2 * 1001);
});

it("decodes only encoded text", () => {
  const decode = vi.spyOn(globalThis, "decodeURIComponent");
  onTestFinished(() => decode.mockRestore());
  expect(readForm(`scope=${"+".repeat(1000)}&client_id=a%2Bb`).message).toMatchObject({
    scope: " ".repeat(1000),
    clientId: "a+b",
  });
  expect(decode).toHaveBeenCalledTimes(1);
});
