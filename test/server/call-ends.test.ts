import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { encodeGrpcMessage } from "../../src/server/grpc-status.ts";
import { failureOf } from "../support/refusal.ts";
import { drain } from "../support/streams.ts";
import { afterOneMessage, always, refuseAtLength, refuseText } from "./failing.ts";
import { connectFramed, type FramedAnswer, type FramedConnection } from "./frames.ts";
import { connectProbe, headOf, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, envelope, grpcStatusOf, readEnvelopes, request } from "./raw.ts";

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
