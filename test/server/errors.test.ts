import { gzipSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { refuse } from "../../src/errors.ts";
import { explainFailure } from "../../src/services/explain-failure.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { drain } from "../support/streams.ts";
import { connectProbe, protocols, serveProbe, startProbe } from "./probe.ts";
import { connectHttp2, envelope, grpcStatusOf, jsonRefusalOf, request } from "./raw.ts";

let url: string;
beforeAll(async () => {
  const probe = await startProbe();
  url = probe.url;
  return probe.end;
});

const invalidField = { code: "invalid_argument", reason: "FIELD_INVALID" };
/** The first integer that a double does not hold. */
const unsafe = "9007199254740993";

describe("the stack of a refusal", () => {
  it("is collected only for a fault of the server, which the log shows", () => {
    const frame = /\n\s+at /;
    expect(refuse("KEY_NOT_FOUND", "the key does not exist").stack).not.toMatch(frame);
    expect(refuse("INTERNAL", "internal error").stack).toMatch(frame);
  });
});

describe("a refusal", () => {
  it("names at most 20 fields", () => {
    const violations = Array.from({ length: 21 }, (_, i) => ({ field: `f${i}`, description: "is wrong" }));
    const { fields } = describeRefusal(refuse("FIELD_INVALID", "wrong", {}, violations));
    expect(fields).toEqual(violations.slice(0, 20).map(({ field }) => field));
  });
});

describe("a refused REST call", () => {
  it("has the one error body, as JSON, and nothing beside it", async () => {
    const answer = await fetch(`${url}/probe/look?nobody=1`);
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toBe("application/json");
    const body = await answer.json();
    expect(body).toEqual({
      status: "error",
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining("nobody"),
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason: "PARAMETER_UNKNOWN",
          domain: "quantum-safe-playground",
          metadata: expect.anything(),
        },
        {
          "@type": "type.googleapis.com/google.rpc.BadRequest",
          fieldViolations: [{ field: "nobody", description: expect.stringMatching(/\S/) }],
        },
      ],
    });
  });

  const targets: [method: string, target: string, status: number, code: string, reason: string][] = [
    ["GET", "/nothing/here", 404, "NOT_FOUND", "ROUTE_NOT_FOUND"],
    ["GET", "/probe/%zz", 400, "INVALID_ARGUMENT", "TARGET_INVALID"],
    ["GET", "/probe/%ff", 400, "INVALID_ARGUMENT", "TARGET_INVALID"],
    ["GET", "/%", 400, "INVALID_ARGUMENT", "TARGET_INVALID"],
    ["GET", "/probing.Probe/%zz", 400, "INVALID_ARGUMENT", "TARGET_INVALID"],
    ["DELETE", "/probe/look", 405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"],
    ["PUT", "/probe/ask", 405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"],
    ["GET", `/probe/look?number=${"9".repeat(30)}`, 400, "INVALID_ARGUMENT", "FIELD_INVALID"],
    ["GET", `/${"x".repeat(4000)}`, 404, "NOT_FOUND", "ROUTE_NOT_FOUND"],
  ];
  it.each(targets)("answers %s %s with %i", async (method, target, status, code, reason) => {
    const answer = await request(connectHttp2(url), { ":method": method, ":path": target });
    expect([answer.status, jsonRefusalOf(answer.body)]).toEqual([status, { code, reason }]);
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      status: "error",
      message: expect.any(String),
    });
  });

  const bodies: [
    what: string,
    body: string | Uint8Array<ArrayBuffer>,
    type: string,
    status: number,
    reason: string,
  ][] = [
    ["no JSON", "{", "application/json", 400, "JSON_INVALID"],
    ["an array", "[]", "application/json", 400, "JSON_INVALID"],
    ["an unknown field", '{"nobody":1}', "application/json", 400, "FIELD_INVALID"],
    ["a field twice", '{"text":"a","text":"b"}', "application/json", 400, "FIELD_INVALID"],
    ["a wrong type", '{"text":5}', "application/json", 400, "FIELD_INVALID"],
    ["invalid base64", '{"data":"%%%"}', "application/json", 400, "FIELD_INVALID"],
    ["a large integer", `{"number":${unsafe}}`, "application/json", 400, "FIELD_INVALID"],
    ["invalid UTF-8", new Uint8Array([0x22, 0xff, 0x22]), "application/json", 400, "JSON_INVALID"],
    ["a picture", "x", "image/jpeg", 415, "MEDIA_TYPE_UNSUPPORTED"],
    ["a form", "text=a", "application/x-www-form-urlencoded", 415, "MEDIA_TYPE_UNSUPPORTED"],
  ];
  it.each(bodies)("refuses %s", async (_what, body, type, status, reason) => {
    const answer = await fetch(`${url}/probe/ask`, {
      method: "POST",
      headers: { "content-type": type },
      body,
    });
    expect([answer.status, jsonRefusalOf(await answer.text())]).toEqual([
      status,
      { code: "INVALID_ARGUMENT", reason },
    ]);
  });
});

describe("an RPC that there is not", () => {
  const paths = ["/probing.Probe/Nothing", "/probing.Nobody/Ask", "/nothing"];

  it.each(paths)("is refused over gRPC by trailers alone: %s", async (path) => {
    const type = "application/grpc";
    const answer = await request(connectHttp2(url), { ":path": path, "content-type": type }, envelope(""));
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toMatch(/^application\/grpc/);
    expect(grpcStatusOf(answer)).toEqual({ status: Code.Unimplemented, reason: "RPC_NOT_FOUND" });
    expect(answer.body).toHaveLength(0);
  });

  it.each(paths)("is refused over gRPC-Web: %s", async (path) => {
    const headers = { ":path": path, "content-type": "application/grpc-web+proto" };
    const answer = await request(connectHttp2(url), headers, envelope(""));
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toMatch(/^application\/grpc-web/);
    expect(grpcStatusOf(answer)).toEqual({ status: Code.Unimplemented, reason: "RPC_NOT_FOUND" });
  });
});

describe("a request on the path of an RPC that is of no protocol", () => {
  it.each(["image/jpeg", "application/grpc+foo", "text/plain", "application/json; charset=latin1"])(
    "is refused with 415 if its type is %s",
    async (type) => {
      const answer = await fetch(`${url}/probing.Probe/Ask`, {
        method: "POST",
        headers: { "content-type": type },
        body: "x",
      });
      expect(answer.status).toBe(415);
      expect(jsonRefusalOf(await answer.text()).reason).toBe("MEDIA_TYPE_UNSUPPORTED");
    },
  );

  it("is refused with 415 if it has no type", async () => {
    const answer = await request(connectHttp2(url), { ":path": "/probing.Probe/Ask" }, "x");
    expect(answer.status).toBe(415);
    expect(jsonRefusalOf(answer.body).reason).toBe("MEDIA_TYPE_UNSUPPORTED");
  });

  it.each(["GET", "PUT", "DELETE"])("is refused with 405 and Allow if its method is %s", async (method) => {
    const answer = await fetch(`${url}/probing.Probe/Ask`, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
    expect(jsonRefusalOf(await answer.text()).reason).toBe("METHOD_NOT_ALLOWED");
  });
});

describe("an integer beyond 2^53 - 1 that JSON would round", () => {
  const json = { method: "POST", headers: { "content-type": "application/json" } };
  const get = (message: string) =>
    fetch(`${url}/probing.Probe/Look?connect=v1&encoding=json&message=${encodeURIComponent(message)}`);

  it.each([unsafe, `-${unsafe}`, "9007199254740992", "1e30", "123456789012345678901234567890"])(
    "is refused as %s over Connect, and the field is named",
    async (number) => {
      const answer = await fetch(`${url}/probing.Probe/Ask`, { ...json, body: `{"number":${number}}` });
      const body = await answer.text();
      expect([answer.status, jsonRefusalOf(body)]).toEqual([400, invalidField]);
      expect(body).toContain("number");
    },
  );

  it("is taken as a string, exactly", async () => {
    const answer = await fetch(`${url}/probing.Probe/Ask`, { ...json, body: `{"number":"${unsafe}"}` });
    expect(await answer.json()).toMatchObject({ number: unsafe });
  });

  it("is not mistaken for 2^53 - 1 itself", async () => {
    const answer = await fetch(`${url}/probing.Probe/Ask`, { ...json, body: '{"number":9007199254740991}' });
    expect(await answer.json()).toMatchObject({ number: "9007199254740991" });
  });

  it("is refused in a compressed body", async () => {
    const answer = await fetch(`${url}/probing.Probe/Ask`, {
      method: "POST",
      headers: { ...json.headers, "content-encoding": "gzip" },
      body: gzipSync(`{"number":${unsafe}}`),
    });
    expect(jsonRefusalOf(await answer.text())).toEqual(invalidField);
  });

  it("is refused in a Connect GET, and taken as a string", async () => {
    expect(jsonRefusalOf(await (await get(`{"number":${unsafe}}`)).text())).toEqual(invalidField);
    expect(await (await get(`{"number":"${unsafe}"}`)).json()).toMatchObject({ number: unsafe });
  });

  it("is refused in a Connect GET with base64", async () => {
    const message = Buffer.from(`{"number":${unsafe}}`).toString("base64url");
    const query = `connect=v1&encoding=json&base64=1&message=${message}`;
    const answer = await fetch(`${url}/probing.Probe/Look?${query}`);
    expect(jsonRefusalOf(await answer.text())).toEqual(invalidField);
  });

  it.each(["Watch", "Collect", "Chat"])("is refused in a Connect stream of %s", async (method) => {
    const answer = await request(
      connectHttp2(url),
      { ":path": `/probing.Probe/${method}`, "content-type": "application/connect+json" },
      envelope(`{"number":${unsafe}}`),
    );
    expect(endOfStream(answer.body)).toEqual(invalidField);
  });

  it.each(["application/grpc+json", "application/grpc-web+json"])("is refused over %s", async (type) => {
    for (const method of ["Ask", "Watch"]) {
      const answer = await request(
        connectHttp2(url),
        { ":path": `/probing.Probe/${method}`, "content-type": type },
        envelope(`{"number":${unsafe}}`),
      );
      expect(grpcStatusOf(answer)).toEqual({ status: 3, reason: "FIELD_INVALID" });
    }
  });
});

describe("bytes that are no message of the request's type", () => {
  /** Field 1 says that 5 bytes follow; 1 does. */
  const malformed = Uint8Array.of(0x0a, 0x05, 0x61);

  it.each([
    "application/grpc",
    "application/grpc+proto",
    "application/grpc-web",
    "application/grpc-web+proto",
  ])("are refused over %s, in calls of every kind", async (type) => {
    const session = connectHttp2(url);
    for (const method of ["Ask", "Watch", "Collect", "Chat"]) {
      const headers = { ":path": `/probing.Probe/${method}`, "content-type": type };
      const answer = await request(session, headers, envelope(malformed));
      expect([method, grpcStatusOf(answer)]).toEqual([
        method,
        { status: Code.InvalidArgument, reason: "MESSAGE_MALFORMED" },
      ]);
    }
  });

  it("are refused in a Connect GET", async () => {
    const message = Buffer.from(malformed).toString("base64url");
    const query = `connect=v1&encoding=proto&base64=1&message=${message}`;
    const answer = await fetch(`${url}/probing.Probe/Look?${query}`);
    expect(jsonRefusalOf(await answer.text())).toEqual({
      code: "invalid_argument",
      reason: "MESSAGE_MALFORMED",
    });
  });

  it.each(["Watch", "Collect", "Chat"])("are refused in a Connect stream of %s", async (method) => {
    const headers = { ":path": `/probing.Probe/${method}`, "content-type": "application/connect+proto" };
    const answer = await request(connectHttp2(url), headers, envelope(malformed));
    expect(endOfStream(answer.body)).toEqual({ code: "invalid_argument", reason: "MESSAGE_MALFORMED" });
  });
});

describe("JSON that is not of the request's type, over Connect,", () => {
  it.each([
    ["an unknown field", '{"nobody":1}', invalidField],
    ["a wrong type", '{"text":5}', invalidField],
  ])("is refused: %s", async (_what, body, expected) => {
    const answer = await fetch(`${url}/probing.Probe/Ask`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect([answer.status, jsonRefusalOf(await answer.text())]).toEqual([400, expected]);
  });

  it("is refused in a stream: an unknown field", async () => {
    const headers = { ":path": "/probing.Probe/Watch", "content-type": "application/connect+json" };
    const answer = await request(connectHttp2(url), headers, envelope('{"nobody":1}'));
    expect(endOfStream(answer.body)).toEqual(invalidField);
  });
});

describe.each(protocols)("over %s", (protocol) => {
  it("a fault of the server tells nothing but that it happened", async () => {
    const broken = await serveProbe({
      ask: () => {
        throw new Error("select * from secrets");
      },
      async *watch() {
        yield { text: "one" };
        throw new TypeError("password=hunter2");
      },
    });
    const client = connectProbe(protocol, broken.url);
    for (const call of [() => client.ask({}), () => drain(client.watch({}))]) {
      const error = await failureOf(call());
      expect(describeRefusal(error)).toEqual({ code: "Internal", reason: "INTERNAL" });
      expect(error.rawMessage).toBe("internal error");
      expect(JSON.stringify([...error.metadata])).not.toMatch(/secrets|hunter2/);
    }
  });

  it("a refusal arrives with its code, its reason and its fields, also in a stream", async () => {
    const refused = () =>
      refuse("KEY_INVALID", "text: is no key", { field: "text" }, [
        { field: "text", description: "is no key" },
      ]);
    const { url: refusingUrl } = await serveProbe({
      ask: () => {
        throw refused();
      },
      async *watch() {
        yield { text: "one" };
        throw refused();
      },
    });
    const client = connectProbe(protocol, refusingUrl);
    const expected = { code: "InvalidArgument", reason: "KEY_INVALID", fields: ["text"] };
    expect(await refusal(client.ask({}))).toEqual(expected);
    expect(await refusal(drain(client.watch({})))).toEqual(expected);
  });
});

describe("a handler's own ConnectError", () => {
  it.each([
    [Code.NotFound, 404],
    [Code.AlreadyExists, 409],
    [Code.PermissionDenied, 403],
    [Code.ResourceExhausted, 429],
    [Code.FailedPrecondition, 400],
    [Code.Aborted, 409],
    [Code.OutOfRange, 400],
    [Code.Unimplemented, 501],
    [Code.Unavailable, 503],
    [Code.Unauthenticated, 401],
    [Code.DataLoss, 500],
    [Code.Canceled, 499],
  ])("with code %i travels over REST with status %i", async (code, status) => {
    const { url: failingUrl } = await serveProbe({
      look: () => {
        throw new ConnectError("no", code);
      },
    });
    expect((await fetch(`${failingUrl}/probe/look`)).status).toBe(status);
  });
});

describe("a call that failed because the store cannot be reached", () => {
  const fail = (): never => {
    throw explainFailure(new StoreFailureError("UNAVAILABLE", new Error("gone")));
  };

  it.each(protocols)("says when to try again, over %s", async (protocol) => {
    const { url: failingUrl } = await serveProbe({ ask: fail });
    const error = await failureOf(connectProbe(protocol, failingUrl).ask({}));
    expect(describeRefusal(error)).toEqual({ code: "Unavailable", reason: "STORE_UNAVAILABLE" });
    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n, nanos: 0 } }]);
    expect(error.metadata.get("retry-after")).toBe("1");
  });

  it("says when to try again, over REST", async () => {
    const { url: failingUrl } = await serveProbe({ look: fail });
    const answer = await fetch(`${failingUrl}/probe/look`);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await answer.json()).toMatchObject({
      code: "UNAVAILABLE",
      details: [{ reason: "STORE_UNAVAILABLE" }, { retryDelay: "1s" }],
    });
  });
});

/** The refusal in the message that ends a Connect stream. */
function endOfStream(body: Buffer) {
  let rest = body;
  while ((rest.readUInt8(0) & 0b10) === 0) rest = rest.subarray(5 + rest.readUInt32BE(1));
  return jsonRefusalOf(JSON.stringify(JSON.parse(rest.subarray(5).toString()).error));
}
