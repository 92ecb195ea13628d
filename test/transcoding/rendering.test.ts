import { create } from "@bufbuild/protobuf";
import { AnySchema, anyPack, DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { refuse } from "../../src/errors.ts";
import { EverythingSchema, NestedSchema } from "../gen/testing/kinds_pb.ts";
import { jsonOf, refusalOf, requestOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";
import { answered, serveRules } from "./rules.ts";

it("a call answers with the headers of the implementation, and its trailers as in Connect", async () => {
  const transcoder = serveLibrary({
    getBook(_request, { responseHeader, responseTrailer }) {
      responseHeader.append("x-header", "1");
      responseHeader.append("set-cookie", "a=1");
      responseHeader.append("set-cookie", "b=2");
      responseTrailer.set("x-trailer", "3");
      return {};
    },
  });
  const { headers } = await send(transcoder, "GET /v1/books/a");
  expect(headers.get("x-header")).toBe("1");
  expect(headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  expect(headers.get("trailer-x-trailer")).toBe("3");
});

describe("an answer is the JSON of its message", () => {
  it("with every field that is set or has no presence, even if it is zero", async () => {
    const answer = await send(serveLibrary({ getBook: () => ({}) }), "GET /v1/books/a");
    const zeros = { name: "", title: "", pages: 0, isbn: "0", lent: false, authors: [], labels: {} };
    expect(jsonOf(answer)).toEqual(zeros);
    const set = { subtitle: "", origin: { case: "donor", value: "" } } as const;
    const full = await send(serveLibrary({ getBook: () => set }), "GET /v1/books/a");
    expect(jsonOf(full)).toEqual({ ...zeros, subtitle: "", donor: "" });
  });

  it("with the names and forms of ProtoJSON, even in an Any", async () => {
    const any = anyPack(NestedSchema, create(NestedSchema, { id: "x", count: 9007199254740993n }));
    const json = jsonOf(await answered({ get: "/v1" }, "GET /v1", { renamed: "b", color: 1, any }));
    const nested = { "@type": "type.googleapis.com/testing.Nested", id: "x", count: "9007199254740993" };
    expect(json).toMatchObject({ "other-name": "b", color: "RED", any: nested });
  });

  it("and empty if the message is", async () => {
    const answer = await send(serveLibrary({ deleteBook: () => ({}) }), "DELETE /v1/shelves/1/books/2");
    expect(answer).toMatchObject({ status: 200, text: "{}\n" });
  });

  it("and ends with exactly one newline, which content-length counts", async () => {
    const answer = await send(serveLibrary({ getBook: () => ({ title: "é🔑\n" }) }), "GET /v1/books/a");
    expect(answer.text).toMatch(/[^\n]\n$/);
    expect(answer.headers.get("content-length")).toBe(String(Buffer.byteLength(answer.text)));
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it("or an error without internals if it cannot be rendered", async () => {
    const answer = await answered({ get: "/v1" }, "GET /v1", {
      any: { typeUrl: "type.googleapis.com/no.Such", value: new Uint8Array() },
    });
    expect(refusalOf(answer)).toMatchObject({ status: 500, code: "INTERNAL", reason: "INTERNAL" });
    expect(answer.text).not.toContain("no.Such");
  });
});

describe("response_body makes one field the answer", () => {
  it.each<[field: string, json: unknown, message: Record<string, unknown>]>([
    ["name", "", {}],
    ["int64_value", "5", { int64Value: 5n }],
    ["bool_value", false, {}],
    ["color", "RED", { color: 1 }],
    ["tags", [], {}],
    ["nesteds", [{ id: "a", longName: "", count: "0", tags: [], labels: {} }], { nesteds: [{ id: "a" }] }],
    ["nested", null, {}],
    ["nickname", null, {}],
    ["text", "a", { choice: { case: "text", value: "a" } }],
    ["text", null, { choice: { case: "number", value: 1n } }],
    ["timestamp", "1970-01-01T00:00:00Z", { timestamp: { seconds: 0n, nanos: 0 } }],
    ["value", [], { value: { kind: { case: "listValue", value: { values: [] } } } }],
    ["int64_wrapper", "0", { int64Wrapper: 0n }],
  ])("%s is %j", async (field, json, message) => {
    const answer = await answered({ get: "/v1", responseBody: field }, "GET /v1", message);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toEqual(json);
  });

  it("for this binding only", async () => {
    const rule = { get: "/v1", responseBody: "name", additionalBindings: [{ get: "/v2" }] };
    const { transcoder } = serveRules([rule], { name: "a" });
    expect((await send(transcoder, "GET /v1")).text).toBe('"a"\n');
    expect(jsonOf(await send(transcoder, "GET /v2"))).toMatchObject({ name: "a" });
  });

  it("as raw bytes if the field is HttpBody, and empty if it is not set", async () => {
    const raw = { contentType: "text/csv", data: Buffer.from("a,b") };
    const answer = await answered({ get: "/v1", responseBody: "raw" }, "GET /v1", { raw });
    expect(answer).toMatchObject({ status: 200, text: "a,b" });
    expect(answer.headers.get("content-type")).toBe("text/csv");
    const empty = await answered({ get: "/v1", responseBody: "raw" }, "GET /v1", {});
    expect(empty).toMatchObject({ status: 200, text: "" });
  });
});

describe("a raw answer (google.api.HttpBody)", () => {
  const cover = "GET /v1/shelves/1/books/2/cover";

  it("has the bytes and the media type of the message, and no JSON", async () => {
    const data = Buffer.from('<p>"é"</p>');
    const transcoder = serveLibrary({ getCover: () => ({ contentType: "text/html; charset=utf-8", data }) });
    const answer = await send(transcoder, cover);
    expect(answer).toMatchObject({ status: 200, text: '<p>"é"</p>' });
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("content-length")).toBe(String(data.length));
  });

  it("without a media type defaults to bytes", async () => {
    const answer = await send(serveLibrary({ getCover: () => ({ data: Buffer.from("x") }) }), cover);
    expect(answer.headers.get("content-type")).toBe("application/octet-stream");
  });

  it("that fails becomes a JSON error", async () => {
    const transcoder = serveLibrary({
      getCover() {
        throw refuse("FIELD_INVALID", "no cover");
      },
    });
    const answer = await send(transcoder, cover, { headers: { accept: "image/png" } });
    expect(refusalOf(answer)).toMatchObject({ status: 400, reason: "FIELD_INVALID" });
    expect(answer.headers.get("content-type")).toBe("application/json");
  });
});

describe("entity tags", () => {
  const book = serveLibrary({ getBook: () => ({ title: "a" }), moveBook: () => ({ title: "a" }) });
  const tagOf = async () => (await send(book, "GET /v1/books/a")).headers.get("etag") ?? "";

  it("are equal for equal answers, and differ otherwise", async () => {
    const other = await send(serveLibrary({ getBook: () => ({ title: "b" }) }), "GET /v1/books/a");
    expect(await tagOf()).toMatch(/^"[!#-~]+"$/);
    expect(await tagOf()).toBe(await tagOf());
    expect(other.headers.get("etag")).not.toBe(await tagOf());
  });

  it.each<[what: string, header: (tag: string) => string]>([
    ["itself, with spaces", (tag) => `  ${tag}  `],
    ["a list", (tag) => `"x", ${tag}, W/"y"`],
    ["anything", () => "*"],
  ])("that match are answered with 304 without content: %s", async (_what, header) => {
    const tag = await tagOf();
    const answer = await send(book, "GET /v1/books/a", { headers: { "if-none-match": header(tag) } });
    expect(answer).toMatchObject({ status: 304, text: "" });
    expect(answer.headers.get("etag")).toBe(tag);
    expect(answer.headers.get("cache-control")).toBeTruthy();
    expect(answer.headers.get("content-type")).toBeNull();
  });

  it.each<[what: string, header: (tag: string) => string]>([
    ["a different tag", () => '"x"'],
    ["without quotation marks", (tag) => tag.replaceAll('"', "")],
    ["in different case", (tag) => `w/${tag}`],
    ["an asterisk in quotation marks", () => '"*"'],
  ])("that do not match are answered with 200: %s", async (_what, header) => {
    const headers = { "if-none-match": header(await tagOf()) };
    expect((await send(book, "GET /v1/books/a", { headers })).status).toBe(200);
  });

  it("work for HEAD as for GET", async () => {
    const head = await send(book, "HEAD /v1/books/a");
    expect(head.headers.get("etag")).toBe(await tagOf());
    const headers = { "if-none-match": await tagOf() };
    expect((await send(book, "HEAD /v1/books/a", { headers })).status).toBe(304);
  });

  it("are omitted for calls that change something", async () => {
    const parts = { body: "{}", headers: { "if-none-match": "*" } };
    const answer = await send(book, "POST /v1/shelves/1/books/2:move", parts);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("etag")).toBeNull();
  });

  it("are omitted for errors", async () => {
    const answer = await send(serveLibrary({}), "GET /v1/books/a", { headers: { "if-none-match": "*" } });
    expect(answer.status).toBe(501);
    expect(answer.headers.get("etag")).toBeNull();
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  it.each([
    ["strong", '"v1"', '"v1"', 304],
    ["strong against weak", '"v1"', 'W/"v1"', 304],
    ["weak against strong", 'W/"v1"', '"v1"', 304],
    ["with a comma, in a list", '"a,b"', '"x", "a,b"', 304],
  ])(
    "can be set by the implementation: %s (RFC 9110, section 8.8.3.2)",
    async (_what, tag, known, status) => {
      const transcoder = serveLibrary({
        getBook(_request, { responseHeader }) {
          responseHeader.set("etag", tag);
          responseHeader.set("cache-control", "max-age=60");
          return {};
        },
      });
      const answer = await send(transcoder, "GET /v1/books/a", { headers: { "if-none-match": known } });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("etag")).toBe(tag);
      expect(answer.headers.get("cache-control")).toBe("max-age=60");
    },
  );
});

describe("HEAD", () => {
  it("has the headers of GET and no content", async () => {
    const transcoder = serveLibrary({ getBook: () => ({ title: "a" }) });
    const get = await send(transcoder, "GET /v1/books/a");
    const head = await send(transcoder, "HEAD /v1/books/a");
    expect(head).toMatchObject({ status: 200, text: "" });
    expect([...head.headers]).toEqual([...get.headers]);
    expect(head.headers.get("content-length")).toBe(String(get.text.length));
  });

  it("has the status of an error and no content", async () => {
    expect(await send(serveLibrary({}), "HEAD /v1/books/a")).toMatchObject({ status: 501, text: "" });
    expect(await send(serveLibrary({}), "HEAD /nowhere")).toMatchObject({ status: 404, text: "" });
  });
});

describe("an error", () => {
  const failing = (error: unknown) =>
    serveLibrary({
      getBook() {
        throw error;
      },
    });
  const failure = async (error: unknown) => send(failing(error), "GET /v1/books/a");

  // google/rpc/code.proto
  it.each([
    [Code.Canceled, "CANCELLED", 499],
    [Code.Unknown, "UNKNOWN", 500],
    [Code.ResourceExhausted, "RESOURCE_EXHAUSTED", 429],
    [Code.Aborted, "ABORTED", 409],
    [Code.OutOfRange, "OUT_OF_RANGE", 400],
    [Code.Unimplemented, "UNIMPLEMENTED", 501],
    [Code.Unavailable, "UNAVAILABLE", 503],
    [Code.DataLoss, "DATA_LOSS", 500],
    [Code.Unauthenticated, "UNAUTHENTICATED", 401],
  ])("%i is %s, %i", async (code, name, status) => {
    const answer = await failure(new ConnectError("what happened", code));
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-length")).toBe(String(Buffer.byteLength(answer.text)));
    expect(answer.text).toMatch(/[^\n]\n$/);
    expect(jsonOf(answer)).toEqual({ status: "error", code: name, message: "what happened", details: [] });
  });

  it("says how to authenticate, unless its thrower does", async () => {
    for (const [headers, challenge] of [
      [{}, "Bearer"],
      [{ "www-authenticate": "DPoP" }, "DPoP"],
    ] as const) {
      const answer = await failure(new ConnectError("log in", Code.Unauthenticated, headers));
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, challenge]);
    }
  });

  it.each([new Error("password=x"), "password=x", undefined, null, 5])(
    "from the machine reveals nothing: %s",
    async (thrown) => {
      const answer = await failure(thrown);
      expect(refusalOf(answer)).toEqual({ status: 500, code: "INTERNAL", reason: "INTERNAL", fields: [] });
      expect(answer.text).not.toContain("password");
    },
  );

  it("may have details: messages, also with well-known types, and well-known types in the form for Any", async () => {
    const error = new ConnectError("a", Code.Unavailable, undefined, [
      { desc: ErrorInfoSchema, value: { reason: "R" } },
      { desc: RetryInfoSchema, value: { retryDelay: { seconds: 5n } } },
      { desc: DurationSchema, value: { seconds: 5n } },
    ]);
    expect(jsonOf(await failure(error)).details).toEqual([
      { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "R" },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "5s" },
      { "@type": "type.googleapis.com/google.protobuf.Duration", value: "5s" },
    ]);
  });

  it("is sent even if its details cannot be rendered", async () => {
    const any = create(AnySchema, { typeUrl: "type.googleapis.com/no.Such" });
    const error = new ConnectError("a", Code.NotFound, undefined, [
      { desc: EverythingSchema, value: { any } },
    ]);
    const response = await failing(error).handle(requestOf("GET /v1/books/a"));
    expect(response.status).toBeGreaterThanOrEqual(400);
  });

  it("from outside the transcoder has the same form", () => {
    const response = serveLibrary({}).renderFailure(refuse("HTTP_INVALID", "no HTTP"));
    expect(response.status).toBe(400);
    expect(JSON.parse(String(response.body))).toMatchObject({ status: "error", code: "INVALID_ARGUMENT" });
  });
});
