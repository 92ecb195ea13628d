import { gzipSync } from "node:zlib";
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { excerpt } from "../../src/errors/shorten.ts";
import { refuse } from "../../src/errors.ts";
import { encodeGrpcMessage } from "../../src/server/grpc-status.ts";
import { explainFailure } from "../../src/services/explain-failure.ts";
import { startKmsServer } from "../faults/kms-server.ts";
import { endAfterAll } from "../support/at-end.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { drain } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { afterOneMessage, always, refuseAtLength, refuseText } from "./failing.ts";
import { connectFramed, type FramedAnswer, type FramedConnection } from "./frames.ts";
import { connectProbe, headOf, protocols, serveProbe } from "./probe.ts";
import {
  connectHttp2,
  endRefusalOf,
  envelope,
  grpcStatusOf,
  jsonRefusalOf,
  readEnvelopes,
  request,
} from "./raw.ts";

const atEnd = endAfterAll();
let url: string;
beforeAll(async () => {
  ({ url } = await serveProbe({}, {}, { atEnd }));
});

const invalidField = { code: "invalid_argument", reason: "FIELD_INVALID" };

/** The first integer that a double cannot hold. */
const unsafe = "9007199254740993";

describe("a refusal", () => {
  it("has a stack only for a server fault, where the log shows it", () => {
    const frame = /\n\s+at /;
    expect(refuse("KEY_NOT_FOUND", "the key does not exist").stack).not.toMatch(frame);
    expect(refuse("INTERNAL", "internal error").stack).toMatch(frame);
  });

  it("names at most 20 fields", () => {
    const violations = Array.from({ length: 21 }, (_, i) => ({ field: `f${i}`, description: "is wrong" }));
    const { fields } = describeRefusal(refuse("FIELD_INVALID", "wrong", {}, violations));
    expect(fields).toEqual(violations.slice(0, 20).map(({ field }) => field));
  });

  // shutdown.test.ts tests that each protocol says so.
  it("of a call that cannot reach the store says when to retry", async () => {
    const cause = new StoreFailureError("UNAVAILABLE", new Error("gone"));
    const error = await failureOf(Promise.reject(explainFailure(cause)));
    expect(describeRefusal(error)).toEqual({ code: "Unavailable", reason: "STORE_UNAVAILABLE" });
    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n, nanos: 0 } }]);
    expect(error.metadata.get("retry-after")).toBe("1");
  });
});

describe("a refused REST call", () => {
  it("has the one error body, as JSON, and nothing else", async () => {
    const answer = await fetch(`${url}/probe/look?nobody=1`);
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toBe("application/json");
    const fieldViolations = [{ field: "nobody", description: expect.stringMatching(/\S/) }];
    expect(await answer.json()).toEqual({
      ...{ status: "error", code: "INVALID_ARGUMENT", message: expect.stringContaining("nobody") },
      details: [
        expect.objectContaining({ reason: "PARAMETER_UNKNOWN", domain: "quantum-safe-playground" }),
        { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations },
      ],
    });
  });

  // refusals.test.ts has the other refusals in each protocol, and test/transcoding the refusals of a body.
  it.each(["/%", "/probing.Probe/%zz"])("answers GET %s with 400", async (path) => {
    const answer = await request(connectHttp2(url), { ":method": "GET", ":path": path });
    const refused = { code: "INVALID_ARGUMENT", reason: "TARGET_INVALID" };
    expect([answer.status, jsonRefusalOf(answer.body)]).toEqual([400, refused]);
  });
});

describe("an integer beyond 2^53 - 1 that JSON would round", () => {
  const type = { "content-type": "application/json" };
  const number = `{"number":${unsafe}}`;
  const look = "/probing.Probe/Look?connect=v1&encoding=json";
  const send = (headers: Record<string, string>, body?: string | Uint8Array) =>
    request(connectHttp2(url), headers, body);
  const ask = (number: string) => send(headOf("Ask", "application/json"), `{"number":${number}}`);

  it("is refused over Connect, naming the field", async () => {
    const { status, body } = await ask(unsafe);
    expect([status, jsonRefusalOf(body)]).toEqual([400, invalidField]);
    expect(body.toString()).toContain("number");
  });

  it.each([
    ["2^53 - 1 itself", "9007199254740991", "9007199254740991"],
    ["a string", `"${unsafe}"`, unsafe],
  ])("is not %s", async (_what, sent, number) => {
    expect(JSON.parse(String((await ask(sent)).body))).toMatchObject({ number });
  });

  it.each([
    ["a compressed body", { ...headOf("Ask"), ...type, "content-encoding": "gzip" }, gzipSync(number)],
    ["a Connect GET", { ":path": `${look}&message=${encodeURIComponent(number)}` }, undefined],
    [
      "base64",
      { ":path": `${look}&base64=1&message=${Buffer.from(number).toString("base64url")}` },
      undefined,
    ],
  ])("is refused in %s", async (_where, headers, body) => {
    expect(jsonRefusalOf((await send(headers, body)).body)).toEqual(invalidField);
  });

  it.each(["Watch", "Collect", "Chat"])("is refused in a %s stream", async (method) => {
    const send = (type: string) => request(connectHttp2(url), headOf(method, type), envelope(number));
    expect(endRefusalOf(await send("application/connect+json"))).toEqual(invalidField);
    for (const type of ["application/grpc+json", "application/grpc-web+json"])
      expect(grpcStatusOf(await send(type))).toEqual({ status: 3, reason: "FIELD_INVALID" });
  });
});

describe.each(protocols)("over %s", (protocol) => {
  it("a stream that has begun ends with the code, the reason and the fields of a refusal", async () => {
    const { url } = await serveProbe(afterOneMessage);
    const expected = { code: "InvalidArgument", reason: "KEY_INVALID", fields: ["text"] };
    expect(await refusal(drain(connectProbe(protocol, url).watch({})))).toEqual(expected);
  });

  it("a stream that has begun reveals nothing about a fault except that it happened", async () => {
    const { url } = await serveProbe({
      async *watch() {
        yield { text: "one" };
        throw new TypeError("password=hunter2");
      },
    });
    const error = await failureOf(drain(connectProbe(protocol, url).watch({})));
    expect([describeRefusal(error).reason, error.rawMessage]).toEqual(["INTERNAL", "internal error"]);
  });
});

const methods = ["Ask", "Watch", "Collect", "Chat"];
// refusals.test.ts tests calls that end before their first message.
describe("a gRPC call", () => {
  const call = (connection: FramedConnection, method: string) =>
    connection.send(headOf(method), envelope(""));
  const refused = { status: "trailers", code: Code.InvalidArgument, reason: "KEY_INVALID" };

  it.each(["Watch", "Chat"])("of %s that fails after a message ends in trailers", async (method) => {
    const { port } = await serveProbe(afterOneMessage);
    const frames = ["HEADERS", "DATA", "HEADERS END_STREAM"];
    expect(endOf(await call(connectFramed(port), method))).toEqual({ ...refused, frames });
  });

  it("whose handler set headers ends in trailers after them, even without a message", async () => {
    const { port } = await serveProbe({
      // biome-ignore lint/correctness/useYield: it fails before there is an answer
      async *watch(_item, { responseHeader }) {
        responseHeader.set("x-own", "one");
        refuseText();
      },
    });
    const answer = await call(connectFramed(port), "Watch");
    expect(endOf(answer)).toEqual({ ...refused, frames: ["HEADERS", "HEADERS END_STREAM"] });
    expect([answer.headers["x-own"], answer.trailers["x-own"]]).toEqual(["one", undefined]);
  });

  it("of a stream that succeeds without messages ends in trailers", async () => {
    const { port } = await serveProbe({ async *watch() {} });
    const answer = await call(connectFramed(port), "Watch");
    expect(answer.frames.map(({ endStream }) => endStream)).toEqual([false, true]);
    expect(answer.trailers["grpc-status"]).toBe("0");
  });

  it.each(["Ask", "Watch"])("of %s carries its message, ErrorInfo and BadRequest", async (method) => {
    const { port } = await serveProbe({ ...afterOneMessage, ask: refuseText });
    const { fields, info, badRequest } = statusOf(await call(connectFramed(port), method));
    expect(fields["grpc-message"]).toBe("text: is no key, see 100%25");
    const domain = "quantum-safe-playground";
    expect(info).toMatchObject({ reason: "KEY_INVALID", domain, metadata: { field: "text" } });
    const fieldViolations = [{ field: "text", description: "is no key" }];
    expect(badRequest).toMatchObject({ fieldViolations });
  });
});

describe("a Connect or gRPC-Web stream", () => {
  const types = ["application/connect+proto", "application/connect+json"];

  it.each(types)("of %s that is refused ends in the frame of its only envelope", async (contentType) => {
    const { port } = await serveProbe({}, { maxMessageBytes: 100 });
    const large = envelope(new Uint8Array(200));
    const answer = await connectFramed(port).send(headOf("Watch", contentType), large);
    // After reading its outcome, a client may reset the stream, or be reset, before another frame.
    expect(answer.frames.map(({ type, endStream }) => `${type} ${endStream}`)).toEqual([
      "HEADERS false",
      "DATA true",
    ]);
    expect(readEnvelopes(answer.body).map(({ flags }) => flags)).toEqual([0x02]);
  });

  it.each(types)("of %s ends after its messages", async (contentType) => {
    const { port } = await serveProbe(afterOneMessage);
    const message = envelope(contentType.endsWith("json") ? "{}" : "");
    const answer = await connectFramed(port).send(headOf("Watch", contentType), message);
    expect(readEnvelopes(answer.body).map(({ flags }) => flags)).toEqual([0, 0x02]);
    expect(answer.frames.at(-1)).toMatchObject({ type: "DATA", endStream: true });
  });

  it("of gRPC-Web has trailers even with a single message", async () => {
    const { port } = await serveProbe();
    const answer = await connectFramed(port).send(headOf("Ask", "application/grpc-web+proto"), envelope(""));
    expect(readEnvelopes(answer.body).map(({ flags }) => flags)).toEqual([0, 0x80]);
    expect(answer.frames.at(-1)).toMatchObject({ type: "DATA", endStream: true });
  });
});

describe("the status of a gRPC call", () => {
  /**
   * grpc-java and grpcio accept 8 KiB of header fields; each field counts for 32 bytes more (RFC 9113,
   * section 6.5.2).
   */
  const clientLimitBytes = 8192;

  it.each(methods)("fits into what clients accept, however large the refusal of %s is", async (method) => {
    const { port } = await serveProbe(always(refuseAtLength));
    const answer = await connectFramed(port).send(headOf(method), envelope(""));
    expect(endOf(answer)).toMatchObject({ code: Code.InvalidArgument, reason: "FIELD_INVALID" });
    expect(bytesOf(answer.headers)).toBeLessThan(clientLimitBytes);
    const { fieldViolations: [violation] = [] } = statusOf(answer).badRequest;
    expect(violation).toMatchObject({ field: "items[0]", description: expect.stringMatching(/^ü+…$/) });
  });

  it("fits into what clients accept, even for the longest allowed path", async () => {
    const { port } = await serveProbe();
    const answer = await connectFramed(port).send(headOf("N".repeat(16_000)), envelope(""));
    expect(endOf(answer)).toMatchObject({ code: Code.Unimplemented, reason: "RPC_NOT_FOUND" });
    expect(bytesOf(answer.headers)).toBeLessThan(clientLimitBytes);
  });
});

it.each([
  ["letters, spaces and signs of ASCII", `a: b, [c]; "d" 'e' <f>/?#=&+$@!~`, undefined],
  ["a percent sign", "100% of %3A", "100%25 of %253A"],
  ["line breaks, a tab and other controls", "a\r\nb\tc\0\x1f\x7f", "a%0D%0Ab%09c%00%1F%7F"],
  ["non-ASCII characters, as UTF-8", "ü€🔑", "%C3%BC%E2%82%AC%F0%9F%94%91"],
  ["half a surrogate pair", "a\ud83d", "a%EF%BF%BD"],
  ["spaces at the ends", "  a b  ", "%20 a b %20"],
  ["nothing", "", ""],
])("a text for grpc-message encodes no more than necessary: %s", (_what, text, encoded = text) => {
  expect(encodeGrpcMessage(text)).toBe(encoded);
});

const text = ' tab\t, a line break\n, [ML-DSA-44]; 100% of %3A and %2C; a/b? #1 & c=d + "ü€🔑" and spaces ';

it.each(protocols)("the text of a refusal reaches a client of connect-node over %s", async (protocol) => {
  // Without details, because clients that find the status in these read its text from there.
  const fail = ({ text }: { text: string }): never => {
    throw new ConnectError(text, Code.InvalidArgument);
  };
  const { url } = await serveProbe({
    ask: fail,
    // biome-ignore lint/correctness/useYield: it fails before any answer
    async *watch(item) {
      fail(item);
    },
  });
  const client = connectProbe(protocol, url);
  expect((await failureOf(client.ask({ text }))).rawMessage).toBe(text);
  expect((await failureOf(drain(client.watch({ text })))).rawMessage).toBe(text);
});

const bodies = ['{"text\\ud800":"a"}', '{"number":"\\ud800"}', '{"te\\ud800":"a","te\\ud800":"a"}'];

it.each(bodies)(
  "JSON with half a surrogate pair, which the refusal quotes is refused with a status: %s",
  async (body) => {
    const { url } = await serveProbe();
    for (const type of ["application/grpc+json", "application/grpc-web+json"]) {
      for (const method of ["Ask", "Watch"]) {
        const answer = await request(connectHttp2(url), headOf(method, type), envelope(body));
        expect(grpcStatusOf(answer)).toEqual({ status: Code.InvalidArgument, reason: "FIELD_INVALID" });
      }
    }
  },
);

function bytesOf(fields: Readonly<Record<string, unknown>>): number {
  const lengths = Object.entries(fields).map(([name, value]) => name.length + String(value).length + 32);
  return lengths.reduce((sum, length) => sum + length, 0);
}

function statusOf({ headers, trailers }: FramedAnswer) {
  const where = headers["grpc-status"] === undefined ? "trailers" : "headers";
  const fields = where === "trailers" ? trailers : headers;
  const status = fromBinary(StatusSchema, Buffer.from(String(fields["grpc-status-details-bin"]), "base64"));
  const find = <Desc extends DescMessage>(desc: Desc) => {
    const any = status.details.find(({ typeUrl }) => typeUrl === `type.googleapis.com/${desc.typeName}`);
    return fromBinary(desc, any?.value ?? new Uint8Array());
  };
  return { where, fields, status, info: find(ErrorInfoSchema), badRequest: find(BadRequestSchema) };
}

/** How a call ended, with everything that clients need; compares its two codes. */
function endOf(answer: FramedAnswer) {
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toMatch(/^application\/grpc/);
  const { where, fields, status, info } = statusOf(answer);
  expect(fields["grpc-status"]).toBe(String(status.code));
  expect(status.message).not.toBe("");
  const frames = answer.frames
    .filter(({ type }) => type !== "RST_STREAM")
    .map(({ type, endStream }) => (endStream ? `${type} END_STREAM` : type));
  return { status: where, frames, code: status.code, reason: info.reason };
}

/** Longer than any text of our own, and never part of one. */
const long = "z".repeat(8000);
const huge = "z".repeat(1_000_000);
const json = { "content-type": "application/json" };
const grpc = { "content-type": "application/grpc", te: "trailers" };
const [sign, restSign] = ["/kms.KmsService/Sign", "/api/kms/sign"];
type Headers = Record<string, string>;
type Request = [what: string, headers: Headers, body?: string | Uint8Array];
const atPath = (what: string, path: string): Request => [what, { ":path": path }];
const to =
  (base: Headers, body: string | Uint8Array) =>
  (what: string, headers: Headers): Request => [what, { ...base, ...headers }, body];
const toRest = to({ ...json, ":path": restSign }, "{}");
const toConnect = to({ ...json, ":path": sign }, "{}");
const toGrpc = to({ ...grpc, ":path": sign }, envelope(""));

const requests: Request[] = [
  atPath("a path", `/${long}`),
  toGrpc("a path under an RPC's service", { ":path": `/kms.KmsService/${long}` }),
  toGrpc("an RPC of no service", { ":path": `/${long}/${long}` }),
  atPath("a path variable", `/api/kms/key/${long}`),
  atPath("a path variable with half a character", `/api/kms/key/${long}%ff`),
  atPath("a query parameter's name", `/api/kms/keys?${long}=1`),
  atPath("a query parameter's value", `/api/kms/keys?pageSize=${long}`),
  atPath("a query that is not UTF-8", `/api/kms/keys?a=${long}%ff`),
  ["a method", { ":method": long.toUpperCase(), ":path": "/api/kms/keys" }],
  toRest("a media type", { "content-type": `application/${long}` }),
  toRest("a charset", { "content-type": `application/json;charset=${long}` }),
  toConnect("a Connect media type", { "content-type": `application/${long}` }),
  toConnect("an invalid media type", { "content-type": long }),
  toRest("an encoding", { "content-encoding": long }),
  toConnect("a Connect encoding", { "content-encoding": long }),
  toGrpc("a gRPC encoding", { "grpc-encoding": long }),
  toGrpc("a timeout", { "grpc-timeout": long }),
  toConnect("a Connect timeout", { "connect-timeout-ms": long }),
  toConnect("a protocol version", { "connect-protocol-version": long }),
  ["accept", { ":path": "/api/kms/keys", accept: `text/${long}` }],
  toRest("an idempotency key", { ":path": "/api/kms/create-key", "idempotency-key": long }),
  atPath("a page token", `/api/kms/keys?pageToken=${long}`),
  ...["/api/kms/batch-sign", "/kms.KmsService/BatchSign"].map((path): Request => {
    return [`a text where a list belongs at ${path}`, { ...json, ":path": path }, `{"data":"${huge}"}`];
  }),
  ...[restSign, sign].flatMap((path) =>
    Object.entries({
      "a member name": `{"${huge}":1}`,
      "a duplicate member name": `{"${huge}":1,"${huge}":2}`,
      "a text where bytes belong": `{"data":"${huge}!"}`,
      "a text where an enum belongs": `{"encoding":"${huge}"}`,
      "a number": `{"keyId":${"1".repeat(100_000)}}`,
      "a keyId": `{"keyId":"${huge}","data":"AA=="}`,
      "no JSON": huge,
    }).map(([what, body]): Request => [`${what} at ${path}`, { ...json, ":path": path }, body]),
  ),
];

describe("an error quotes at most 100 characters of", () => {
  const atEnd = endAfterAll();
  let url: string;
  beforeAll(async () => {
    const dataDir = makeTemporaryDirectory(atEnd);
    ({ url } = await startKmsServer({ dataDir, args: ["--max-metadata-bytes", "65536"] }, atEnd));
  }, 120_000);

  it.each(requests)("%s", async (_what, headers, body) => {
    const answer = await request(connectHttp2(url), { ":path": "/", ...headers }, body);
    const { headers: fields, trailers } = answer;
    const details = String(fields["grpc-status-details-bin"] ?? trailers["grpc-status-details-bin"]);
    const decoded = Buffer.from(details, "base64").toString("latin1");
    const all = [answer.body.toString(), JSON.stringify([fields, trailers]), decoded].join("\n");
    const echoes = all.match(/z{20,}/gi) ?? [];
    expect(Math.max(0, ...echoes.map((echo) => echo.length))).toBeLessThanOrEqual(100);
    expect(all.length).toBeLessThan(8 * 1024);
  });
});

describe("excerpt", () => {
  it("leaves 100 characters unchanged and shortens more to 100", () => {
    expect(excerpt("a".repeat(100))).toBe("a".repeat(100));
    expect(excerpt("a".repeat(101))).toBe(`${"a".repeat(99)}…`);
  });

  it("splits no surrogate pair", () => {
    for (let offset = 0; offset < 4; offset += 1) {
      const short = excerpt("a".repeat(offset) + "🔑".repeat(100));
      expect([short.isWellFormed(), short.endsWith("…"), short.length > 97]).toEqual([true, true, true]);
    }
  });
});

describe("refuse", () => {
  it("shortens metadata wherever the message quotes it", () => {
    const { rawMessage } = refuse("ROUTE_NOT_FOUND", `nothing at ${long}, nothing at all`, { path: long });
    expect(rawMessage).toBe(`nothing at ${excerpt(long)}, nothing at all`);
  });

  it("shortens quoted text", () => {
    const text = "z".repeat(4000);
    const { rawMessage } = refuse("FIELD_INVALID", `got "${text}" and "${text}"`);
    expect(rawMessage).toBe(`got "${excerpt(text)}" and "${excerpt(text)}"`);
  });
});
