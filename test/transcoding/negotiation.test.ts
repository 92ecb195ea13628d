import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { holdsSecret } from "../../src/http/compression.ts";
import { chooseCoding } from "../../src/http/content-coding.ts";
import type { RestResponse } from "../../src/transcoding/http.ts";
import { refusalOf, requestOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";
import { serveRules } from "./rules.ts";

const notAcceptable = { status: 406, code: "INVALID_ARGUMENT", reason: "NOT_ACCEPTABLE", fields: [] };
const ndjson = "application/x-ndjson";
const array = "application/json";
const events = "text/event-stream";

describe("a unary call is answered with JSON", () => {
  it.each([
    undefined,
    "",
    "*/*",
    "application/*",
    "APPLICATION/JSON",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html ,\tapplication/json;q=0.001",
    "application/*;q=0, application/json",
    ",application/json,,",
  ])("to accept: %s", async (accept) => {
    const headers = accept === undefined ? {} : { accept };
    const answer = await send(serveLibrary({ getBook: () => ({}) }), "GET /v1/books/a", { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it.each([
    "text/*",
    "application/x-ndjson",
    "application/json;q=0.000, text/html",
    "application/json;Q=0",
    "*/*, application/json;q=0",
    "application/*, application/json;q=0",
  ])("and refused before anything is done for accept: %s", async (accept) => {
    const answer = await send(serveLibrary({}), "GET /v1/books/a", { headers: { accept } });
    expect(refusalOf(answer)).toEqual(notAcceptable);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });
});

describe("the stream format follows accept", () => {
  const transcoder = serveLibrary({
    async *watchBooks() {
      yield { title: "a" };
    },
  });
  const watch = (accept: string | undefined) =>
    send(transcoder, "GET /v1/shelves/1/books:watch", { headers: accept === undefined ? {} : { accept } });

  it.each<[accept: string | undefined, type: string]>([
    [undefined, ndjson],
    ["*/*", ndjson],
    ["application/ndjson", "application/ndjson"],
    ["application/json, text/plain, */*;q=0.1", array],
    ["TEXT/EVENT-STREAM", events],
    ["text/*", events],
    ["text/event-stream;q=0.1, application/json;q=0.2", array],
    ["application/json;q=0.5, application/x-ndjson;q=0.6, text/event-stream;q=0.4", ndjson],
    ["*/*;q=0.5, text/event-stream", events],
    ["application/x-ndjson;q=0, application/json", array],
  ])("%s: %s", async (accept, type) => {
    const { status, headers } = await watch(accept);
    expect([status, headers.get("content-type"), headers.get("vary")]).toEqual([200, type, "accept"]);
  });

  it.each(["text/html", "*/*;q=0"])("%s: refused", async (accept) => {
    expect(refusalOf(await watch(accept))).toEqual(notAcceptable);
  });
});

it.each(["image/png", "text/html"])("a raw answer ignores accept: %s", async (accept) => {
  const transcoder = serveLibrary({ getCover: () => ({ contentType: "image/png", data: Buffer.from("x") }) });
  const answer = await send(transcoder, "GET /v1/shelves/1/books/2/cover", { headers: { accept } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/png"]);
});

const name = "quantum-safe ".repeat(500);
const decoders: Record<string, (bytes: Uint8Array) => Buffer> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

async function ask(
  headers: Record<string, string>,
  answer: Record<string, unknown> = { name },
  method = "GET",
): Promise<RestResponse & { body: Uint8Array }> {
  const { transcoder } = serveRules([{ get: "/v1" }], answer);
  const response = await transcoder.handle(requestOf(`${method} /v1`, { headers }));
  if (!(response.body instanceof Uint8Array)) throw new Error("the answer did not come whole");
  return { ...response, body: response.body };
}

describe("a REST response", () => {
  it.each(["gzip", "br", "zstd"])("is compressed with %s for a client that accepts it", async (coding) => {
    const { headers, body } = await ask({ "accept-encoding": coding });
    expect(headers.get("content-encoding")).toBe(coding);
    expect(headers.get("vary")).toBe("accept-encoding");
    expect(headers.get("content-length")).toBe(String(body.length));
    expect(body.length).toBeLessThan(name.length / 10);
    expect(JSON.parse(String(decoders[coding]?.(body))).name).toBe(name);
  });

  it.each([undefined, "identity", "gzip;q=0", "*;q=0"])(
    "is not compressed with accept-encoding %s",
    async (accept) => {
      const { headers, body } = await ask(accept === undefined ? {} : { "accept-encoding": accept });
      expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([null, "accept-encoding"]);
      expect(JSON.parse(String(Buffer.from(body))).name).toBe(name);
    },
  );

  it("is not compressed if small, unless the client accepts nothing else", async () => {
    const small = { name: "a" };
    expect((await ask({ "accept-encoding": "gzip" }, small)).headers.get("content-encoding")).toBeNull();
    const { headers } = await ask({ "accept-encoding": "gzip, identity;q=0" }, small);
    expect(headers.get("content-encoding")).toBe("gzip");
  });

  it("has a weak entity tag if compressed, and is answered with 304 for it", async () => {
    const plain = (await ask({})).headers.get("etag");
    const tag = (await ask({ "accept-encoding": "gzip" })).headers.get("etag");
    expect(tag).toBe(`W/${plain}`);
    const again = await ask({ "accept-encoding": "gzip", "if-none-match": String(tag) });
    expect([again.status, again.body.length, again.headers.get("etag")]).toEqual([304, 0, tag]);
    expect([again.headers.get("vary"), again.headers.has("content-encoding")]).toEqual([
      "accept-encoding",
      false,
    ]);
  });
});

describe("a response that holds a secret is never compressed", () => {
  it.each([
    ["TokenService.IssueToken", TokenService.method.issueToken, true],
    ["KmsService.Encapsulate", KmsService.method.encapsulate, true],
    ["KmsService.Decapsulate", KmsService.method.decapsulate, true],
    ["VpnService.RegisterPeer", VpnService.method.registerPeer, true],
    ["KmsService.ListKeys", KmsService.method.listKeys, false],
    ["KmsService.GetAuditLog", KmsService.method.getAuditLog, false],
  ])("%s: %s", (_name, { output }, holds) => {
    expect(holdsSecret(output)).toBe(holds);
  });
});

describe("chooseCoding", () => {
  const rows: [accept: string | undefined, coding: string | undefined, isIdentityAccepted: boolean][] = [
    [undefined, undefined, true],
    ["", undefined, true],
    ["gzip", "gzip", true],
    ["x-gzip", "gzip", true],
    ["GZIP", "gzip", true],
    ["gzip, br", "br", true],
    ["gzip;q=1, br;q=0.5", "gzip", true],
    ["*;q=0.1, br;q=0", "gzip", true],
    ["*;q=0", undefined, false],
    ["identity;q=0", undefined, false],
    ["gzip;q=0.5, identity", undefined, true],
    ["gzip, *;q=0", "gzip", false],
    ["gzip;q=2", undefined, true],
    ["deflate, compress", undefined, true],
  ];
  it.each(rows)("%s", (accept, coding, isIdentityAccepted) => {
    expect(chooseCoding(accept, ["br", "gzip"])).toEqual({ coding, isIdentityAccepted });
  });
});
