import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { chunked, type RequestParts, refusalOf, send, stalled } from "./client.ts";
import { serveLibrary } from "./library.ts";
import { invalid, type RuledRpc, received, serveRules } from "./rules.ts";

const rule: RuledRpc = { post: "/v1", body: "*" };
const post = (parts: RequestParts) => received(rule, "POST /v1", parts);
const maxBytes = 1000;

/** Posts to a server that accepts no more than maxBytes. */
async function postLimited(parts: RequestParts, limited: RuledRpc = rule) {
  const { transcoder, calls } = serveRules([limited], {}, { maxBytes });
  const answer = await send(transcoder, "POST /v1", parts);
  return calls[0]?.request ?? refusalOf(answer);
}

const tooLarge = { status: 413, code: "RESOURCE_EXHAUSTED", reason: "BODY_TOO_LARGE", fields: [] };
const unsupportedType = {
  status: 415,
  code: "INVALID_ARGUMENT",
  reason: "MEDIA_TYPE_UNSUPPORTED",
  fields: [],
};
const unsupportedEncoding = {
  status: 415,
  code: "UNIMPLEMENTED",
  reason: "ENCODING_UNSUPPORTED",
  fields: [],
};

/** JSON of exactly this many bytes. */
function jsonOfSize(bytes: number): string {
  return JSON.stringify({ name: "a".repeat(bytes - '{"name":""}'.length) });
}

describe("a body", () => {
  it("may arrive in pieces, even split within a character", async () => {
    const bytes = Buffer.from('{"name":"é🔑"}');
    const body = chunked(...Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)));
    expect(await post({ body })).toEqual({ name: "é🔑" });
  });

  const accepted = [
    "application/json",
    "APPLICATION/JSON",
    "application/json;charset=utf-8",
    "application/json; charset=UTF-8",
    'application/json ; charset="utf-8"',
    "application/json; charset=us-ascii",
    "application/json; profile=x",
  ];
  for (const type of accepted) {
    it(`may be ${type}`, async () => {
      expect(await post({ body: '{"name":"a"}', headers: { "content-type": type } })).toEqual({ name: "a" });
    });
  }

  it("may omit its media type", async () => {
    expect(await post({ body: '{"name":"a"}' })).toEqual({ name: "a" });
  });

  const refused = [
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/grpc",
    "application/proto",
    "application/x-ndjson",
    "application/jsonp",
    "application",
    "json",
    "application/json, text/plain",
    "application/json; charset=iso-8859-1",
    "application/json; charset=utf-16",
    "application/json; Charset=latin1",
  ];
  for (const type of refused) {
    it(`may not be ${type}`, async () => {
      expect(await post({ body: '{"name":"a"}', headers: { "content-type": type } })).toEqual(
        unsupportedType,
      );
    });
  }

  it("of the wrong media type is refused with a list of the right ones (RFC 9110, section 15.5.16)", async () => {
    const parts = { body: "a=b", headers: { "content-type": "application/x-www-form-urlencoded" } };
    const answer = await send(serveRules([rule]).transcoder, "POST /v1", parts);
    expect(answer.headers.get("accept")).toContain("application/json");
  });

  it("of zero bytes may have any media type if no body is needed", async () => {
    const parts = { body: "", headers: { "content-type": "text/plain" } };
    expect(await received({ get: "/v1" }, "GET /v1", parts)).toEqual({});
  });
});

describe("a compressed body", () => {
  const gzip = { "content-encoding": "gzip" };

  for (const encoding of ["gzip", "GZIP", " gzip ", "x-gzip"]) {
    it(`may be ${JSON.stringify(encoding)}`, async () => {
      const body = gzipSync('{"name":"a"}');
      expect(await post({ body, headers: { "content-encoding": encoding } })).toEqual({ name: "a" });
    });
  }

  it("may turn out to be empty", async () => {
    const headers = { "content-encoding": "identity" };
    expect(await post({ body: '{"name":"a"}', headers })).toEqual({ name: "a" });
  });

  it("may arrive in pieces", async () => {
    const bytes = gzipSync('{"name":"a"}');
    const body = chunked(...Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)));
    expect(await post({ body, headers: gzip })).toEqual({ name: "a" });
  });

  it("may be raw bytes", async () => {
    const result = await received({ put: "/v1", body: "raw" }, "PUT /v1", {
      body: gzipSync("{"),
      headers: gzip,
    });
    expect(result).toEqual({ raw: { contentType: "application/octet-stream", data: "ew==" } });
  });

  it("of raw bytes may not be a part (RFC 9110, section 14.5)", async () => {
    const parts = { body: "{", headers: { "content-range": "bytes 1-1/2" } };
    expect(await received({ put: "/v1", body: "raw" }, "PUT /v1", parts)).toMatchObject({
      status: 400,
      reason: "BODY_INCOMPLETE",
    });
  });

  for (const encoding of [
    "br",
    "deflate",
    "zstd",
    "compress",
    "gzip, gzip",
    "gzip, br",
    "aws-chunked",
    "*",
  ]) {
    it(`may not be ${encoding}`, async () => {
      const body = gzipSync('{"name":"a"}');
      expect(await post({ body, headers: { "content-encoding": encoding } })).toEqual(unsupportedEncoding);
    });
  }

  it("with an unknown encoding is refused with a list of the known ones (RFC 9110, section 12.5.3)", async () => {
    const parts = { body: "x", headers: { "content-encoding": "br" } };
    const answer = await send(serveRules([rule]).transcoder, "POST /v1", parts);
    expect(answer.headers.get("accept-encoding")).toBe("gzip");
  });

  const whole = gzipSync('{"name":"a"}');
  const damaged: [what: string, body: Uint8Array][] = [
    ["plain JSON", Buffer.from('{"name":"a"}')],
    ["truncated", whole.subarray(0, -5)],
    ["only a header", whole.subarray(0, 10)],
    ["a wrong checksum", whole.map((byte, index) => (index === whole.length - 6 ? byte ^ 1 : byte))],
    ["one byte", Uint8Array.of(31)],
  ];
  for (const [what, body] of damaged) {
    it(`is refused if it is damaged: ${what}`, async () => {
      expect(await post({ body, headers: gzip })).toEqual(invalid("ENCODING_INVALID"));
    });
  }

  it("is counted after decompression", async () => {
    const body = gzipSync(jsonOfSize(maxBytes + 1));
    expect(body.length).toBeLessThan(maxBytes);
    expect(await postLimited({ body, headers: gzip })).toEqual(tooLarge);
  });

  it("may expand to the limit", async () => {
    const result = await postLimited({ body: gzipSync(jsonOfSize(maxBytes)), headers: gzip });
    expect(result).toHaveProperty("name");
  });

  it("that expands a thousandfold is refused without being decompressed", async () => {
    const body = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const before = process.memoryUsage().arrayBuffers;
    expect(await postLimited({ body, headers: gzip })).toEqual(tooLarge);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });
});

describe("the size limit of a body", () => {
  it("allows a body of exactly that size", async () => {
    expect(await postLimited({ body: jsonOfSize(maxBytes) })).toHaveProperty("name");
  });

  it("refuses one byte more", async () => {
    expect(await postLimited({ body: jsonOfSize(maxBytes + 1) })).toEqual(tooLarge);
  });

  it("refuses the body as soon as too much of it has arrived", async () => {
    const endless = (async function* () {
      for (;;) yield Buffer.alloc(100, 0x20);
    })();
    expect(await postLimited({ body: endless })).toEqual(tooLarge);
  });

  it("refuses by content-length before any byte arrives", async () => {
    const headers = { "content-length": String(maxBytes + 1) };
    expect(await postLimited({ body: stalled(), headers })).toEqual(tooLarge);
  });

  it("applies to raw bodies", async () => {
    const raw = { post: "/v1", body: "raw" };
    expect(await postLimited({ body: Buffer.alloc(maxBytes) }, raw)).toHaveProperty("raw");
    expect(await postLimited({ body: Buffer.alloc(maxBytes + 1) }, raw)).toEqual(tooLarge);
  });

  it("is 4 MiB by default", async () => {
    expect(await post({ body: jsonOfSize(4 * 1024 * 1024) })).toHaveProperty("name");
    expect(await post({ body: jsonOfSize(4 * 1024 * 1024 + 1) })).toEqual(tooLarge);
  });
});

describe("a body that does not arrive", () => {
  const tooSlow = { status: 408, code: "DEADLINE_EXCEEDED", reason: "REQUEST_TOO_SLOW", fields: [] };
  const rules: [what: string, rule: RuledRpc][] = [
    ["whole", rule],
    ["as a field", { post: "/v1", body: "nested" }],
    ["raw", { post: "/v1", body: "raw" }],
    ["where none is allowed", { post: "/v1" }],
  ];
  for (const [what, slow] of rules) {
    it(`is refused after the timeout: ${what}`, async () => {
      const { transcoder, calls } = serveRules([slow], {}, { maxReceiveMs: 20 });
      expect(refusalOf(await send(transcoder, "POST /v1", { body: stalled("") }))).toEqual(tooSlow);
      expect(calls).toEqual([]);
    });
  }

  it("ends when the caller disconnects", async () => {
    const caller = new AbortController();
    const answer = send(serveRules([rule]).transcoder, "POST /v1", {
      body: stalled("{"),
      signal: caller.signal,
    });
    caller.abort();
    await expect(answer).rejects.toThrow("the caller left");
  });

  it("ends when the server shuts down", async () => {
    const shutdown = new AbortController();
    const { transcoder } = serveRules([rule], {}, { shutdownSignal: shutdown.signal });
    const answer = send(transcoder, "POST /v1", { body: stalled("{") });
    shutdown.abort();
    expect((await answer).status).toBeGreaterThanOrEqual(400);
  });

  it("ends when its connection breaks", async () => {
    const broken = (async function* () {
      yield Buffer.from("{");
      throw new Error("ECONNRESET");
    })();
    const answer = send(serveRules([rule]).transcoder, "POST /v1", { body: broken });
    await expect(answer).rejects.toThrow("the caller left");
  });
});

describe("a long upload", () => {
  it("is not kept in memory once it has been read", { timeout: 120_000 }, async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const chunkBytes = 64 * 1024;
    const maxHeldBytes = 100 * chunkBytes;
    const heldBytes: number[] = [];
    const measure = async () => {
      const enoughBytes = (heldBytes[0] ?? Number.POSITIVE_INFINITY) + maxHeldBytes;
      let bytes = Number.POSITIVE_INFINITY;
      // Buffer memory is released only some time after a collection.
      for (let i = 0; i < 50 && (i < 3 || bytes >= enoughBytes); i += 1) {
        collectGarbage();
        await new Promise((resolve) => setTimeout(resolve, 1));
        bytes = Math.min(bytes, process.memoryUsage().arrayBuffers);
      }
      heldBytes.push(bytes);
    };
    const upload = (async function* () {
      for (let sent = 0; sent <= 1000; sent += 1) {
        if (sent % 1000 === 0) await measure();
        yield new Uint8Array(chunkBytes);
        await new Promise(setImmediate);
      }
    })();
    const transcoder = serveLibrary({
      async writeFile(requests) {
        let totalSize = 0;
        for await (const request of requests) totalSize += request.cover?.data.length ?? 0;
        return { totalSize };
      },
    });
    const answer = await send(transcoder, "POST /v1/files/a", { body: upload });
    expect(JSON.parse(answer.text)).toMatchObject({ totalSize: 1001 * chunkBytes });
    const [before = 0, after = 0] = heldBytes;
    expect(after - before).toBeLessThan(maxHeldBytes);
  });
});
