/** The QUERY method (RFC 10008), which is safe to retry and has a body. */
import { beforeEach, describe, expect, it } from "vitest";
import { HttpBodySchema } from "#gen/google/api/httpbody_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { type RequestParts, refusalOf, send, stalled } from "./client.ts";
import { createRestServer, type RestServer } from "./rest-server.ts";
import {
  describeService,
  implementUnary,
  invalid,
  notAllowed,
  outcome,
  type Rule,
  type Ruled,
  serveRules,
  startRefusal,
} from "./rules.ts";

/** A rule for POST and for QUERY on the same path. */
const find: Rule = {
  post: "/v1/find",
  body: "*",
  additionalBindings: [{ custom: { kind: "QUERY", path: "/v1/find" }, body: "*" }],
};
const json = { "content-type": "application/json" };
const unsupported = { status: 415, reason: "MEDIA_TYPE_UNSUPPORTED" };

let served: Ruled;
beforeEach(() => {
  served = serveRules([find]);
});
const ask = (parts: RequestParts, line = "QUERY /v1/find") => send(served.transcoder, line, parts);

describe("a QUERY", () => {
  it.each([
    ["QUERY /v1/find body: *", "QUERY /v1/find", '{"name":"a"}', { name: "a" }],
    ["query /v1/find body: *", "QUERY /v1/find", '{"name":"e"}', { name: "e" }],
  ])("reaches the RPC of %s", async (rule, line, body, request) => {
    expect(await outcome([rule], line, { headers: json, body })).toEqual({ rpc: "Rpc1", request });
  });

  it.each([
    ["with a body", { body: "{}" }],
    ["without a body", {}],
    ["with an empty type", { headers: { "content-type": "" }, body: "{}" }],
  ])("without a content-type is refused with 400 %s", async (_what, parts) => {
    const answer = await ask(parts);
    expect(refusalOf(answer)).toEqual(invalid("MEDIA_TYPE_MISSING"));
    expect(answer.headers.get("accept-query")).toBe("application/json");
    expect(served.calls).toEqual([]);
  });

  it.each(["text/plain", "application/json; charset=latin1", "nonsense"])(
    "of the type %s is refused with 415 and a list of the supported types",
    async (type) => {
      // It is refused before its body arrives.
      const answer = await ask({ headers: { "content-type": type }, body: stalled() });
      expect(refusalOf(answer)).toMatchObject(unsupported);
      expect(answer.headers.get("accept-query")).toBe("application/json");
      expect(answer.headers.get("accept")).toBe("application/json");
      expect(served.calls).toEqual([]);
    },
  );

  it("needs a content-type even for a rule with any method", async () => {
    const ask = (headers: Record<string, string>) =>
      outcome(["* /v1/find body: *"], "QUERY /v1/find", { headers, body: "{}" });
    expect(await ask({})).toEqual(invalid("MEDIA_TYPE_MISSING"));
    expect(await ask(json)).toMatchObject({ rpc: "Rpc1" });
  });
});

it("a POST to the path of a QUERY may omit the content-type, and does not get the types for QUERY", async () => {
  expect((await ask({ body: "{}" }, "POST /v1/find")).status).toBe(200);
  const answer = await ask({ headers: { "content-type": "text/plain" }, body: "{}" }, "POST /v1/find");
  expect(refusalOf(answer)).toMatchObject(unsupported);
  expect(answer.headers.has("accept-query")).toBe(false);
});

describe("the path of a QUERY", () => {
  it.each([
    ["of raw bytes", "own", { input: HttpBodySchema }, "*/*"],
    ["of an OAuth service", "oauth", {}, "application/x-www-form-urlencoded, application/json"],
  ] as const)("%s has other types in Accept-Query", async (_what, restStyle, messages, types) => {
    const service = describeService([{ ...find, ...messages }]);
    const transcoder: RestServer = createRestServer({
      ...defaultBodyLimits,
      services: [implementUnary(service, () => () => ({}))],
      profiles: { [service.typeName]: { restStyle } },
    });
    expect((await send(transcoder, "OPTIONS /v1/find")).headers.get("accept-query")).toBe(types);
    const refused = await send(transcoder, "QUERY /v1/find", { body: "{}" });
    expect(refused.headers.get("accept-query")).toBe(types);
  });

  it("is the only one with Accept-Query", async () => {
    const { transcoder } = serveRules([{ post: "/v1/find", body: "*" }]);
    for (const line of ["OPTIONS /v1/find", "QUERY /v1/find", "QUERY /v1/nothing"])
      expect((await send(transcoder, line)).headers.has("accept-query")).toBe(false);
    expect(refusalOf(await send(transcoder, "QUERY /v1/find"))).toEqual(notAllowed);
  });
});

describe("a server does not start with", () => {
  it("a QUERY without a body", () => {
    const rule: Rule = { post: "/v1", additionalBindings: [{ custom: { kind: "QUERY", path: "/v1" } }] };
    expect(startRefusal([rule])).toBe(
      "testing.Ruled1.Rpc1, additional binding 1: a QUERY request needs a body; set body",
    );
  });

  it.each(["BREW", "CONNECT"])("the method %s, which no server receives", (kind) => {
    expect(startRefusal([{ custom: { kind, path: "/v1" } }])).toBe(
      `testing.Ruled1.Rpc1: the HTTP method "${kind}" is not supported; use a registered one, or "*" for any`,
    );
  });
});
