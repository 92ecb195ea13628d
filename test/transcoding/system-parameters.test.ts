/**
 * The conventions of Google's APIs, for services that follow them: system parameters and the form of errors.
 */
import { describe, expect, it } from "vitest";
import { refuse } from "../../src/errors.ts";
import { SystematicSchema } from "../gen/testing/kinds_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { type Answer, type RequestParts, refusalOf, send } from "./client.ts";
import { createRestServer, type RestOptions } from "./rest-server.ts";
import { describeService, implementUnary, type RuledRpc, serveRules } from "./rules.ts";

const google = { profiles: { "testing.Ruled": { restStyle: "google" } } } as const;
const answer = { color: 1, int64Value: 9007199254740993n, colors: [2] };
const rule: RuledRpc = { get: "/v1/{name}" };

/** Calls one rule of a service with Google's conventions. */
const call = (line: string, one: RuledRpc = rule, body?: string): Promise<Answer> =>
  send(serveRules([one], answer, google).transcoder, line, body === undefined ? {} : { body });

/** The request that the RPC receives, or the message of the refusal. */
async function received(line: string, one: RuledRpc = rule, body?: string): Promise<unknown> {
  const { transcoder, calls } = serveRules([one], {}, google);
  const { text } = await send(transcoder, line, body === undefined ? {} : { body });
  return calls[0]?.request ?? JSON.parse(text).error.message;
}

describe("an answer", () => {
  const named = { color: "RED", colors: ["GREEN"], int64Value: "9007199254740993" };
  const numbered = { color: 1, colors: [2], int64Value: "9007199254740993" };
  it.each([
    ["", named],
    ["$alt=json", named],
    ["alt=json", named],
    ["%24alt=json%3Benum-encoding%3Dint", numbered],
    ["alt=json;enum-encoding=int", numbered],
  ])("to ?%s has its enums in the requested form", async (query, expected) => {
    expect(JSON.parse((await call(`GET /v1/a?${query}`)).text)).toMatchObject(expected);
  });

  it.each([
    ["$prettyPrint=1", /^\{\n {2}"name": "",\n/],
    ["", /^\{"name":"",.*\}\n$/],
    ["prettyPrint=false", /^\{"name":"",.*\}\n$/],
  ])("to ?%s has its members on one line or on several", async (query, form) => {
    const { text } = await call(`GET /v1/a?${query}`);
    expect(text).toMatch(form);
    expect(JSON.parse(text)).toMatchObject(named);
  });

  it("has a different entity tag in a different form", async () => {
    const [plain, numbers] = await Promise.all(
      ["", "?$alt=json;enum-encoding=int"].map((query) => call(`GET /v1/a${query}`)),
    );
    expect(numbers?.headers.get("etag")).not.toBe(plain?.headers.get("etag"));
  });

  it("with one field supports the forms too", async () => {
    const { text } = await call("GET /v1/a?$alt=json;enum-encoding=int", { ...rule, responseBody: "colors" });
    expect(JSON.parse(text)).toEqual([2]);
  });
});

describe("parameters for Google's billing", () => {
  it.each(["key=AIza", "$key=AIza", "quotaUser=ada", "$quotaUser=ada", "$.xgafv=2", "key=a&quotaUser=b"])(
    "have no effect: ?%s",
    async (query) => {
      expect(await received(`GET /v1/a?${query}`)).toEqual({ name: "a" });
    },
  );

  it("may stand between request fields", async () => {
    const query = "displayName=b&key=x&$alt=json;enum-encoding=int&tags=c%26d";
    expect(await received(`GET /v1/a?${query}`)).toEqual({ name: "a", displayName: "b", tags: ["c&d"] });
  });

  it("may stand next to a field mask, whose names may have the proto form as Google's Node client sends them", async () => {
    const query = "mask=display_name%2Cnested.long_name&key=x";
    expect(await received(`GET /v1/a?${query}`)).toEqual({ name: "a", mask: "displayName,nested.longName" });
    expect(await received("GET /v1/a?mask=_name")).toMatch(/^mask: /);
  });

  it("are accepted by a call whose fields are all in its body", async () => {
    const post = { post: "/v1/{name}", body: "*" };
    expect(await received("POST /v1/a?key=x&$alt=json", post, '{"displayName":"b"}')).toEqual({
      name: "a",
      displayName: "b",
    });
  });
});

describe("a parameter that cannot take effect is refused by name", () => {
  it.each([
    ["fields=name", "fields", /answers are always complete/],
    ["access_token=secret", "access_token", /authorization header/],
    ["callback=f", "callback", /JSONP/],
    ["uploadType=media", "uploadType", /uploads/],
    ["$alt=media", "$alt", /"media" is not supported; send json or json;enum-encoding=int/],
    ["alt=toString", "alt", /"toString" is not supported/],
    ["prettyPrint=2", "prettyPrint", /"2" is not supported; send .*true or false/],
    ["$.xgafv=1", "$.xgafv", /"1" is not supported; send 2/],
    ["$unknown=1", "$unknown", /has no field/],
    ["hasOwnProperty=1", "hasOwnProperty", /has no field/],
  ])("?%s", async (query, parameter, advice) => {
    const { status, text } = await call(`GET /v1/a?${query}`);
    const { error } = JSON.parse(text);
    expect([status, error.code, error.status]).toEqual([400, 400, "INVALID_ARGUMENT"]);
    expect(error.details[0]).toMatchObject({ reason: "PARAMETER_UNKNOWN", metadata: { parameter } });
    expect(error.message).toMatch(advice);
    expect(text).not.toContain("secret");
  });

  it.each(["alt=json&alt=json", "alt=json&$alt=json", "key=a&key=b"])(
    "and so is a duplicate: ?%s",
    async (query) => {
      const { error } = JSON.parse((await call(`GET /v1/a?${query}`)).text);
      expect(error.details[0].reason).toBe("PARAMETER_DUPLICATE");
    },
  );
});

describe("a request field with the name of a system parameter", () => {
  it.each([
    ["key=b&fields=c", { name: "a", key: "b", fields: "c" }],
    ["$key=b", { name: "a" }],
    ["key=c&$key=b", { name: "a", key: "c" }],
  ])("is set without the dollar sign only: ?%s", async (query, expected) => {
    expect(await received(`GET /v1/a?${query}`, { get: "/v1/{name}", input: SystematicSchema })).toEqual(
      expected,
    );
  });
});

describe('the body "", which Google\'s Node client sends for a message without fields,', () => {
  const post: RuledRpc = { post: "/v1/{name}", body: "nested" };

  it("means an empty message", async () => {
    expect(await received("POST /v1/a", post, '""')).toEqual({ name: "a" });
  });

  it.each(['" "', '"a"', "''", '"""'])("is the only such text: not %s", async (body) => {
    expect((await call("POST /v1/a", post, body)).status).toBe(400);
  });
});

describe("our own services refuse", () => {
  it.each<[line: string, rule: RuledRpc, parts: RequestParts, reason: string]>([
    ["GET /v1/a?$alt=json", rule, {}, "PARAMETER_UNKNOWN"],
    ["GET /v1/a?key=a", rule, {}, "PARAMETER_UNKNOWN"],
    ["POST /v1", { post: "/v1", body: "nested" }, { body: '""' }, "FIELD_INVALID"],
  ])("%s", async (line, one, parts, reason) => {
    const answer = await send(serveRules([one]).transcoder, line, parts);
    expect(refusalOf(answer)).toMatchObject({ status: 400, reason });
  });
});

describe("an error", () => {
  const services = [
    { name: "google.Test", rules: [{ get: "/v1/a" }, { get: "/shared/a" }] },
    { name: "own.Test", rules: [{ get: "/api/a" }, { get: "/shared/b" }] },
  ].map(({ name, rules }) =>
    implementUnary(describeService(rules, name), () => () => {
      throw refuse("KEY_NOT_FOUND", "no key k", { keyId: "k" });
    }),
  );
  const options: RestOptions = {
    ...defaultBodyLimits,
    services,
    profiles: { "google.Test": { restStyle: "google" } },
  };
  const transcoder = createRestServer(options);
  const info = { reason: "KEY_NOT_FOUND", domain: "quantum-safe-playground", metadata: { keyId: "k" } };
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", ...info }];

  it("from a service with Google's conventions has Google's form, with our details and our HTTP status", async () => {
    const { status, text } = await send(transcoder, "GET /v1/a");
    expect([status, JSON.parse(text)]).toEqual([
      404,
      { error: { code: 404, message: "no key k", status: "NOT_FOUND", details } },
    ]);
  });

  it("from another service has our own form", async () => {
    const { text } = await send(transcoder, "GET /api/a");
    expect(JSON.parse(text)).toEqual({ status: "error", code: "NOT_FOUND", message: "no key k", details });
  });

  it.each([
    ["GET /v1/b", 404, "google"],
    ["DELETE /v1/a", 405, "google"],
    ["GET /v1/%zz", 400, "google"],
    ["DELETE /api/a", 405, "own"],
    ["GET /shared/a", 404, "google"],
    ["GET /shared/c", 404, "own"],
    ["GET /", 404, "own"],
  ])("of %s has status %i and the form %s", async (line, status, form) => {
    const answer = await send(transcoder, line);
    const json = JSON.parse(answer.text);
    expect(answer.status).toBe(status);
    expect("error" in json ? "google" : json.status === "error" && "own").toBe(form);
  });
});
