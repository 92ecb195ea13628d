/** A server for third-party protos: who may call, and errors in Google's form, before any handler. */
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import { refuse } from "../../src/errors.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { Library } from "../gen/testing/library_pb.ts";
import { ada, profilesWith } from "./probe.ts";
import { serve } from "./serve.ts";

/** Serves a library. Returns a function that calls it and returns status and JSON. */
async function startLibrary(limits: Partial<ServerLimits> = {}) {
  const getBook: ServiceImpl<typeof Library>["getBook"] = ({ name }) => ({ name });
  const { url } = await serve({
    services: [createServiceImplSpec<typeof Library>(Library, { getBook } as never)],
    access: {
      mode: "token",
      authenticate: async (authorization) => {
        if (authorization === null) throw refuse("TOKEN_MISSING", "no token");
        return ada;
      },
    },
    limits,
    profiles: profilesWith(Access.AUTHENTICATED, Library, "google"),
  });
  return async (line: string, { token = "ada", body }: { token?: string; body?: string } = {}) => {
    const [method = "", path = ""] = line.split(" ");
    const headers = { ...(token && { authorization: token }), "content-type": "application/json" };
    const response = await fetch(url + path, { method, headers, body: body ?? null });
    return { status: response.status, headers: response.headers, json: await response.json() };
  };
}

/** The fields of an error in Google's form that programs use. */
function errorOf({ status, json }: { status: number; json: unknown }): string {
  const { error, ...others } = json as {
    error: { code: number; status: string; message: string; details: { reason: string }[] };
  };
  expect([others, error.code]).toEqual([{}, status]);
  return `${status} ${error.status} ${error.details[0]?.reason}`;
}

describe("a service with Google's conventions", () => {
  it("answers a caller that its profile admits", async () => {
    const call = await startLibrary();
    const answer = await call("GET /v1/books/a?$alt=json&key=AIza");
    expect(answer).toMatchObject({ status: 200, json: { name: "a" } });
  });

  const far = `GET /v1/books/${"a".repeat(20_000)}`;
  // test/transcoding/system-parameters.test.ts has the errors of a call.
  it.each<[string, string, { token?: string; body?: string }, string]>([
    ["no token", "GET /v1/books/a", { token: "" }, "401 UNAUTHENTICATED TOKEN_MISSING"],
    ["no JSON", "POST /v1/shelves/a/books", { body: "{" }, "400 INVALID_ARGUMENT JSON_INVALID"],
    ["metadata above the limit", far, {}, "431 RESOURCE_EXHAUSTED METADATA_TOO_LARGE"],
  ])("refuses %s in Google's form", async (_what, line, parts, expected) => {
    const call = await startLibrary();
    expect(errorOf(await call(line, parts))).toBe(expected);
  });

  it("refuses a call above the rate in Google's form, with a retry delay", async () => {
    const call = await startLibrary({ maxCallsPerSecond: 0.001 });
    await call("GET /v1/books/a");
    const refused = await call("GET /v1/books/a");
    expect(errorOf(refused)).toBe("429 RESOURCE_EXHAUSTED RATE_LIMITED");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("has our form for paths outside its own, and Connect's form for Connect", async () => {
    const call = await startLibrary();
    const elsewhere = await call("GET /elsewhere");
    expect(elsewhere).toMatchObject({ status: 404, json: { status: "error", code: "NOT_FOUND" } });
    const connect = await call(`POST /${Library.typeName}/GetBook`, { token: "", body: "{}" });
    expect(connect).toMatchObject({ status: 401, json: { code: "unauthenticated", message: "no token" } });
  });
});
