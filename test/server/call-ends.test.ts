import { fromBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { afterOneMessage, always, refuseAtLength, refuseText } from "./failing.ts";
import { connectFramed, type FramedAnswer, type FramedConnection } from "./frames.ts";
import { headOf, serveProbe } from "./probe.ts";
import { envelope, readEnvelopes } from "./raw.ts";

const methods = ["Ask", "Watch", "Collect", "Chat"];

// refusals.test.ts tests calls that end before their first message.
describe("a gRPC call", () => {
  const call = (connection: FramedConnection, method: string) =>
    connection.send(headOf(method), envelope(""));

  it.each(["Watch", "Chat"])("of %s that fails after a message ends in trailers", async (method) => {
    const { port } = await serveProbe(afterOneMessage);
    const answer = await call(connectFramed(port), method);
    expect(endOf(answer)).toEqual({
      status: "trailers",
      frames: ["HEADERS", "DATA", "HEADERS END_STREAM"],
      code: Code.InvalidArgument,
      reason: "KEY_INVALID",
    });
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
    expect(endOf(answer)).toEqual({
      status: "trailers",
      frames: ["HEADERS", "HEADERS END_STREAM"],
      code: Code.InvalidArgument,
      reason: "KEY_INVALID",
    });
    expect([answer.headers["x-own"], answer.trailers["x-own"]]).toEqual(["one", undefined]);
  });

  it("of a stream that succeeds without messages ends in trailers", async () => {
    const { port } = await serveProbe({ async *watch() {} });
    const answer = await call(connectFramed(port), "Watch");
    expect(answer.frames.map(({ endStream }) => endStream)).toEqual([false, true]);
    expect(answer.trailers["grpc-status"]).toBe("0");
  });

  it("carries its message, ErrorInfo and BadRequest in both forms", async () => {
    const { port } = await serveProbe({ ...afterOneMessage, ask: refuseText });
    const connection = connectFramed(port);
    for (const method of ["Ask", "Watch"]) {
      const { fields, details } = statusOf(await call(connection, method));
      expect(fields["grpc-message"]).toBe("text: is no key, see 100%25");
      const [info, badRequest] = details;
      expect(fromBinary(ErrorInfoSchema, info?.value ?? new Uint8Array())).toMatchObject({
        reason: "KEY_INVALID",
        domain: "quantum-safe-playground",
        metadata: { field: "text" },
      });
      expect(
        fromBinary(BadRequestSchema, badRequest?.value ?? new Uint8Array()).fieldViolations,
      ).toMatchObject([{ field: "text", description: "is no key" }]);
    }
  });
});

describe("a Connect or gRPC-Web stream", () => {
  const types = ["application/connect+proto", "application/connect+json"];

  it.each(types)("of %s that is refused ends in the frame of its only envelope", async (contentType) => {
    const { port } = await serveProbe({}, { maxMessageBytes: 100 });
    const answer = await connectFramed(port).send(
      headOf("Watch", contentType),
      envelope(new Uint8Array(200)),
    );
    // After reading its outcome, a client may reset the stream, or be reset, before another frame.
    const frames = answer.frames.map(({ type, endStream }) => [type, endStream]);
    expect(frames).toEqual([
      ["HEADERS", false],
      ["DATA", true],
    ]);
    expect(readEnvelopes(answer.body).map(({ flags }) => flags)).toEqual([0x02]);
  });

  it.each(types)("of %s ends after its messages", async (contentType) => {
    const { port } = await serveProbe(afterOneMessage);
    const answer = await connectFramed(port).send(
      headOf("Watch", contentType),
      envelope(contentType.endsWith("json") ? "{}" : ""),
    );
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
    const [, badRequest] = statusOf(answer).details;
    expect(
      fromBinary(BadRequestSchema, badRequest?.value ?? new Uint8Array()).fieldViolations[0],
    ).toMatchObject({
      field: "items[0]",
      description: expect.stringMatching(/^ü+…$/),
    });
  });

  it("fits into what clients accept, even for the longest allowed path", async () => {
    const { port } = await serveProbe();
    const answer = await connectFramed(port).send(headOf("N".repeat(16_000)), envelope(""));
    expect(endOf(answer)).toMatchObject({ code: Code.Unimplemented, reason: "RPC_NOT_FOUND" });
    expect(bytesOf(answer.headers)).toBeLessThan(clientLimitBytes);
  });
});

function bytesOf(fields: Readonly<Record<string, unknown>>): number {
  return Object.entries(fields).reduce(
    (sum, [name, value]) => sum + name.length + String(value).length + 32,
    0,
  );
}

function statusOf({ headers, trailers }: FramedAnswer) {
  const isTrailersOnly = headers["grpc-status"] !== undefined;
  const fields = isTrailersOnly ? headers : trailers;
  const bytes = Buffer.from(String(fields["grpc-status-details-bin"] ?? ""), "base64");
  return { isTrailersOnly, fields, ...fromBinary(StatusSchema, bytes) };
}

/** How a call ended, with everything that clients need; compares its two codes. */
function endOf(answer: FramedAnswer) {
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toMatch(/^application\/grpc/);
  const { isTrailersOnly, fields, code, message, details } = statusOf(answer);
  expect(fields["grpc-status"]).toBe(String(code));
  expect(message).not.toBe("");
  const info = details.find(({ typeUrl }) => typeUrl === "type.googleapis.com/google.rpc.ErrorInfo");
  return {
    status: isTrailersOnly ? "headers" : "trailers",
    frames: answer.frames
      .filter(({ type }) => type !== "RST_STREAM")
      .map(({ type, endStream }) => (endStream ? `${type} END_STREAM` : type)),
    code,
    reason: info && fromBinary(ErrorInfoSchema, info.value).reason,
  };
}
