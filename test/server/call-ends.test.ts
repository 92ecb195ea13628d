import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { refusal } from "../support/refusal.ts";
import { afterOneMessage, always, hang, refuseAtLength, refuseText } from "./failing.ts";
import { connectFramed, type FramedAnswer, type FramedConnection } from "./frames.ts";
import { type ProbeBehaviour, serveProbe } from "./probe.ts";
import { envelope } from "./raw.ts";

/** How gRPC reports a failed call. */
interface GrpcEnd {
  /** "headers" for Trailers-Only, "trailers" after the named frames. */
  readonly status: "headers" | "trailers";
  readonly frames: readonly string[];
  readonly code: number;
  readonly reason: string | undefined;
}

/** A refused call: what the server does and what the client sends. */
interface Refused {
  readonly behaviour?: ProbeBehaviour;
  readonly limits?: Partial<ServerLimits>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Undefined leaves the request open. */
  readonly body?: Uint8Array | undefined;
  readonly end: Omit<GrpcEnd, "status" | "frames">;
}

const flag = 1;

const refusals: Record<string, Refused> = {
  "a compressed message above the limit": {
    limits: { maxMessageBytes: 1000 },
    headers: { "grpc-encoding": "gzip" },
    body: envelope(gzipSync(new Uint8Array(2000)), flag),
    end: { code: Code.ResourceExhausted, reason: "BODY_TOO_LARGE" },
  },
  "a compressed message without an encoding": {
    body: envelope(gzipSync(""), flag),
    end: { code: Code.Internal, reason: "ENCODING_MISSING" },
  },
  "bytes that are not compressed as announced": {
    headers: { "grpc-encoding": "gzip" },
    body: envelope("no gzip", flag),
    end: { code: Code.InvalidArgument, reason: "ENCODING_INVALID" },
  },
  "a request that ends within a prefix": {
    body: Uint8Array.of(0, 0),
    end: { code: Code.InvalidArgument, reason: "BODY_INCOMPLETE" },
  },
  "a deadline that has passed": {
    behaviour: always(hang),
    headers: { "grpc-timeout": "0m" },
    end: { code: Code.DeadlineExceeded, reason: "DEADLINE_EXCEEDED" },
  },
};

const methods = ["Ask", "Watch", "Collect", "Chat"];

describe.each(Object.entries(refusals))(
  "a gRPC call that fails before its first message, for %s,",
  (_name, refused) => {
    it.each(methods)("ends %s in one HEADERS frame with the whole status", async (method) => {
      const { port } = await serveProbe(refused.behaviour, refused.limits);
      const headers = { ":path": `/probing.Probe/${method}`, "content-type": "application/grpc" };
      const answer = await connectFramed(port).send(
        { ...headers, ...refused.headers },
        refused.body ?? envelope(""),
      );
      expect(endOf(answer)).toEqual({ status: "headers", frames: ["HEADERS END_STREAM"], ...refused.end });
      expect(answer.headers["content-type"]).toBe("application/grpc+proto");
    });
  },
);

describe("a gRPC-Web call without a handler", () => {
  it("reports the reason to a connect-web client", async () => {
    const { url } = await serveProbe();
    const client = createClient(KmsService, createGrpcWebTransport({ baseUrl: url }));
    const expected = { code: "Unimplemented", reason: "RPC_NOT_FOUND" };
    expect(await refusal(client.getKey({}))).toEqual(expected);
    const entries = client.watchAuditLog({})[Symbol.asyncIterator]();
    expect(await refusal(entries.next())).toEqual(expected);
  });
});

describe("a gRPC call", () => {
  const call = (connection: FramedConnection, method: string, body: Uint8Array | undefined = envelope("")) =>
    connection.send({ ":path": `/probing.Probe/${method}`, "content-type": "application/grpc" }, body);

  it("that expects one message and gets none ends in one HEADERS frame", async () => {
    const { port } = await serveProbe();
    for (const method of ["Ask", "Watch"]) {
      expect(endOf(await call(connectFramed(port), method, Buffer.alloc(0)))).toEqual({
        status: "headers",
        frames: ["HEADERS END_STREAM"],
        code: Code.Unimplemented,
        reason: "NOT_IMPLEMENTED",
      });
    }
  });

  it("above the limit on concurrent calls ends in one HEADERS frame while its request is open", async () => {
    const { port } = await serveProbe({}, { maxCalls: 0, maxStreams: 0 });
    const connection = connectFramed(port);
    for (const method of methods) {
      const { session, read } = connection;
      const stream = session.request({
        ":method": "POST",
        ":path": `/probing.Probe/${method}`,
        "content-type": "application/grpc",
      });
      stream.write(envelope(""));
      expect(endOf(await read(stream))).toMatchObject({ status: "headers", reason: "SERVER_BUSY" });
    }
  });

  it.each(methods)("of %s that is aborted by shutdown ends in one HEADERS frame", async (method) => {
    const entered = Promise.withResolvers<void>();
    const act = () => {
      entered.resolve();
      return hang();
    };
    const { server, port } = await serveProbe(always(act), { maxDrainMs: 20 });
    const answer = call(connectFramed(port), method);
    await entered.promise;
    const closed = server.close();
    expect(endOf(await answer)).toEqual({
      status: "headers",
      frames: ["HEADERS END_STREAM"],
      code: Code.Unavailable,
      reason: "SHUTTING_DOWN",
    });
    await closed;
  });

  it("aborted by shutdown after a message ends in trailers", async () => {
    const { server, port } = await serveProbe(
      {
        async *watch(_item, { signal }) {
          yield { text: "one" };
          await once(signal, "abort");
        },
      },
      { maxDrainMs: 20 },
    );
    const { session, read } = connectFramed(port);
    const headers = {
      ":method": "POST",
      ":path": "/probing.Probe/Watch",
      "content-type": "application/grpc",
    };
    const stream = session.request(headers);
    const answer = read(stream);
    stream.end(envelope(""));
    await once(stream, "data");
    const closed = server.close();
    expect(endOf(await answer)).toEqual({
      status: "trailers",
      frames: ["HEADERS", "DATA", "HEADERS END_STREAM"],
      code: Code.Unavailable,
      reason: "SHUTTING_DOWN",
    });
    await closed;
  });

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
      { ":path": "/probing.Probe/Watch", "content-type": contentType },
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
      { ":path": "/probing.Probe/Watch", "content-type": contentType },
      envelope(contentType.endsWith("json") ? "{}" : ""),
    );
    expect(readEnvelopes(answer.body).map(({ flags }) => flags)).toEqual([0, 0x02]);
    expect(answer.frames.at(-1)).toMatchObject({ type: "DATA", endStream: true });
  });

  it("of gRPC-Web has trailers even with a single message", async () => {
    const { port } = await serveProbe();
    const answer = await connectFramed(port).send(
      { ":path": "/probing.Probe/Ask", "content-type": "application/grpc-web+proto" },
      envelope(""),
    );
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
    const answer = await connectFramed(port).send(
      { ":path": `/probing.Probe/${method}`, "content-type": "application/grpc" },
      envelope(""),
    );
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
    const answer = await connectFramed(port).send(
      { ":path": `/probing.Probe/${"N".repeat(16_000)}`, "content-type": "application/grpc" },
      envelope(""),
    );
    expect(endOf(answer)).toMatchObject({ code: Code.Unimplemented, reason: "RPC_NOT_FOUND" });
    expect(bytesOf(answer.headers)).toBeLessThan(clientLimitBytes);
  });
});

/** The envelopes of a body: one byte of flags, four bytes of length, the message. */
function readEnvelopes(body: Buffer): { flags: number; message: Buffer }[] {
  const envelopes: { flags: number; message: Buffer }[] = [];
  for (let at = 0; at < body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    envelopes.push({ flags: body[at] ?? 0, message: body.subarray(at + 5, end) });
    at = end;
  }
  return envelopes;
}

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
function endOf(answer: FramedAnswer): GrpcEnd {
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
