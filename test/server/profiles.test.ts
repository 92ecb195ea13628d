/** A server for third-party protos: who may call, and errors in Google's form, before any handler. */
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import type { ServiceProfile } from "../../src/calls/service-profile.ts";
import { refuse } from "../../src/errors.ts";
import type { AccessPolicy } from "../../src/server/interceptors/access.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { Library } from "../gen/testing/library_pb.ts";
import { serve } from "./serve.ts";

const profile: ServiceProfile = {
  restStyle: "google",
  comment: "Lends books.",
  rpcs: Object.fromEntries(
    Library.methods.map(({ name }) => [
      name,
      { access: Access.AUTHENTICATED, scope: "library.use", comment: `${name}.` },
    ]),
  ),
};

const policy: AccessPolicy = {
  mode: "token",
  authenticate: async (authorization) => {
    if (authorization !== "Bearer good") throw refuse("TOKEN_MISSING", "no token");
    return { role: "user", subject: "ada", issuedAt: new Date(0), expiresAt: new Date(0) };
  },
};

interface Options {
  readonly access?: AccessPolicy;
  readonly limits?: Partial<ServerLimits>;
  readonly handlers?: Partial<ServiceImpl<typeof Library>>;
}

/**
 * Starts a library that stops with the test.
 *
 * @returns a function that calls it and returns status and JSON
 */
async function startLibrary({ access = policy, limits = {}, handlers = {} }: Options = {}) {
  const getBook: ServiceImpl<typeof Library>["getBook"] = ({ name }) => ({ name });
  const services = [createServiceImplSpec<typeof Library>(Library, { getBook, ...handlers } as never)];
  const { url } = await serve({
    services,
    access,
    limits,
    profiles: { [Library.typeName]: profile },
  });
  return async (line: string, { token = "good", body }: { token?: string; body?: string } = {}) => {
    const [method = "", path = ""] = line.split(" ");
    const headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
    };
    const response = await fetch(url + path, { method, headers, ...(body !== undefined && { body }) });
    return { status: response.status, headers: response.headers, json: await response.json() };
  };
}

/** The fields of an error in Google's form that programs use. */
function errorOf({ status, json }: { status: number; json: unknown }): unknown {
  const { error, ...others } = json as {
    error: { code: number; status: string; message: string; details: { reason: string }[] };
  };
  expect(others).toEqual({});
  expect(error.code).toBe(status);
  return [status, error.status, error.details[0]?.reason];
}

describe("a service with Google's conventions", () => {
  it("answers a caller that its profile admits", async () => {
    const call = await startLibrary();
    expect(await call("GET /v1/books/a?$alt=json&key=AIza")).toMatchObject({
      status: 200,
      json: { name: "a" },
    });
  });

  type Refused = [what: string, line: string, parts: { token?: string; body?: string }, expected: unknown[]];
  const refused: Refused[] = [
    ["no token", "GET /v1/books/a", { token: "" }, [401, "UNAUTHENTICATED", "TOKEN_MISSING"]],
    ["an unknown parameter", "GET /v1/books/a?x=1", {}, [400, "INVALID_ARGUMENT", "PARAMETER_UNKNOWN"]],
    ["no JSON", "POST /v1/shelves/a/books", { body: "{" }, [400, "INVALID_ARGUMENT", "JSON_INVALID"]],
    ["an unknown path below its own", "GET /v1/nothing", {}, [404, "NOT_FOUND", "ROUTE_NOT_FOUND"]],
    ["a wrong method", "DELETE /v1/books/a", {}, [405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"]],
    [
      "metadata above the limit",
      `GET /v1/books/${"a".repeat(20_000)}`,
      {},
      [431, "RESOURCE_EXHAUSTED", "METADATA_TOO_LARGE"],
    ],
  ];
  it.each(refused)("refuses %s in Google's form", async (_what, line, parts, expected) => {
    const call = await startLibrary();
    expect(errorOf(await call(line, parts))).toEqual(expected);
  });

  it("refuses a call above the rate in Google's form, with a retry delay", async () => {
    const call = await startLibrary({ limits: { maxCallsPerSecond: 0.001 } });
    await call("GET /v1/books/a");
    const late = await call("GET /v1/books/a");
    expect(errorOf(late)).toEqual([429, "RESOURCE_EXHAUSTED", "RATE_LIMITED"]);
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("hides a bug behind Google's form", async () => {
    const getBook = () => {
      throw new Error("secret");
    };
    const call = await startLibrary({ handlers: { getBook } });
    const answer = await call("GET /v1/books/a");
    expect(errorOf(answer)).toEqual([500, "INTERNAL", "INTERNAL"]);
    expect(JSON.stringify(answer.json)).not.toContain("secret");
  });

  it("answers an unknown path outside its own in our form", async () => {
    const call = await startLibrary();
    const { status, json } = await call("GET /elsewhere");
    expect([status, json]).toMatchObject([404, { status: "error", code: "NOT_FOUND" }]);
  });

  it("speaks Connect like any other service", async () => {
    const call = await startLibrary();
    const { status, json } = await call(`POST /${Library.typeName}/GetBook`, { token: "", body: "{}" });
    expect([status, json]).toMatchObject([401, { code: "unauthenticated", message: "no token" }]);
  });
});
