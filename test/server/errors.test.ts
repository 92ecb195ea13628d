import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { refuse } from "../../src/errors.ts";
import { explainFailure } from "../../src/services/explain-failure.ts";
import { endAfterAll } from "../support/at-end.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { drain } from "../support/streams.ts";
import { afterOneMessage } from "./failing.ts";
import { connectProbe, headOf, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, endRefusalOf, envelope, grpcStatusOf, jsonRefusalOf, request } from "./raw.ts";

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

  const numbers = [unsafe, `-${unsafe}`, "9007199254740992", "1e30", "123456789012345678901234567890"];
  it.each(numbers)("is refused as %s over Connect, naming the field", async (number) => {
    const { status, body } = await ask(number);
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
