/** envoy.service.auth.v3.Authorization: decisions and caching. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, it, vi } from "vitest";
import { AttributeContextSchema } from "#gen/envoy/service/auth/v3/attribute_context_pb.ts";
import {
  Authorization,
  CheckRequestSchema,
  type CheckResponse,
} from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import { refuse } from "../../../src/errors.ts";
import type { TokenHolder } from "../../../src/identity/authenticate.ts";
import type { TokenClaims } from "../../../src/identity/issuer.ts";
import { findMessageLimit } from "../../../src/message-limits/message-limit.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { createCheck } from "../check.ts";
import { createHolders } from "../holders.ts";
import { envoyProfiles } from "../profiles.ts";

const issuerUrl = "https://id.example.com";
const audience = "https://orders.example.com";
const claims: TokenClaims = {
  subject: "ada",
  use: undefined,
  generation: "1",
  keyId: "key",
  issuedAt: new Date(0),
  expiresAt: new Date(3_600_000),
};
const access = {
  audiences: [audience],
  clientId: "ada",
  clientGeneration: "1",
  scopes: ["orders.read"],
  tokenId: "t",
  earlierActors: [],
  origins: [],
};
const loggedIn: TokenHolder = { ...claims, userId: "user:1", role: "user", scopes: undefined };
const holder: TokenHolder = { ...loggedIn, access, scopes: access.scopes };

/** Accepts one token. */
const findIn = (found: TokenHolder) => (token: string) => {
  if (token === "a.b.c") return found;
  throw refuse("TOKEN_MALFORMED", "no");
};

/** Checks a request with these context extensions. */
async function decide(
  extensions: Record<string, string>,
  { found = holder, headers = bearer as Record<string, string>, hasUrl = true, http = {} } = {},
): Promise<CheckResponse> {
  const attributes = { contextExtensions: extensions, request: { http: { headers, ...http } } };
  const check = createCheck({
    findTokenHolder: findIn(found),
    issuerUrl: hasUrl ? issuerUrl : undefined,
  });
  return check(create(AttributeContextSchema, attributes));
}
const bearer = { authorization: "Bearer a.b.c" };
const device: TokenHolder = { ...loggedIn, subject: "device-1", role: "device" };
const own: TokenHolder = { ...holder, access: { ...access, audiences: [issuerUrl] } };
const codeOf = ({ status }: CheckResponse) => Code[status?.code ?? 0] ?? "OK";
const messageOf = ({ status }: CheckResponse) => status?.message;

describe("a route's requirements", () => {
  it.each<[string, code: string, Record<string, string>, TokenHolder]>([
    ["accept a token for the route's audience", "OK", { audience }, holder],
    ["accept a log-in if the route names no audience", "OK", {}, loggedIn],
    ["accept a token for this server's URL if the route names no audience", "OK", {}, own],
    ["reject another service's token if the route names no audience", "Unauthenticated", {}, holder],
    ["can be a scope", "OK", { audience, scopes: "orders.read" }, holder],
    ["reject devices", "PermissionDenied", {}, device],
    ["reject devices, which have no scopes", "PermissionDenied", { scopes: "payroll.write" }, device],
    ["accept devices if they name the device role", "OK", { roles: "device" }, device],
    ["can list several roles, one of which is enough", "OK", { audience, roles: "auditor user" }, holder],
    ["reject all other roles", "PermissionDenied", { audience, roles: "auditor admin" }, holder],
  ])("%s", async (_, code, extensions, found) => {
    expect(codeOf(await decide(extensions, { found }))).toBe(code);
  });

  it.each([
    { scope: "orders.read" },
    { Audience: audience },
    { "forward-token": "yes" },
    { audience: "" },
    { roles: "" },
    { scopes: " " },
  ])("reject everyone if they are not understood: %j", async (extensions) => {
    const decision = await decide({ audience, ...extensions } as Record<string, string>);
    expect(codeOf(decision)).toBe("PermissionDenied");
  });

  it("reject everyone if there is neither an audience nor a server URL", async () => {
    const decision = await decide({}, { found: loggedIn, hasUrl: false });
    expect(codeOf(decision)).toBe("PermissionDenied");
    expect(messageOf(decision)).toContain("--issuer-url");
  });

  it("can be several scopes, all of which a scoped token needs", async () => {
    const refused = await decide({ audience, scopes: "orders.read orders.write" });
    expect(codeOf(refused)).toBe("PermissionDenied");
    expect(messageOf(refused)).toBe("the token needs the scope orders.write");
  });

  it("are denied with a short message and without copying if they are large", async () => {
    const refused = await decide({ audience, scopes: "a ".repeat(1_000_000) });
    expect(codeOf(refused)).toBe("PermissionDenied");
    const message = "the route has context extensions of 2000040 characters; the limit is 4096";
    expect(messageOf(refused)).toBe(message);
    expect(messageOf(await decide({ audience, [`x${"y".repeat(3000)}`]: "" }))?.length).toBeLessThan(300);
  });
});

describe("the service", () => {
  const scopesFor = async (found: TokenHolder, extensions: Record<string, string>) => {
    const { httpResponse } = await decide(extensions, { found });
    const { headers = [], headersToRemove = [] } =
      httpResponse?.case === "okResponse" ? httpResponse.value : {};
    const sent = headers.find(({ header }) => header?.key === "x-auth-scopes");
    return [sent?.header?.value, sent?.keepEmptyValue, headersToRemove.includes("x-auth-scopes")];
  };

  it("can distinguish an access token without scopes from a log-in, which no scope limits", async () => {
    const none: TokenHolder = { ...holder, access: { ...access, scopes: [] }, scopes: [] };
    expect(await scopesFor(none, { audience })).toEqual(["", true, false]);
    expect(await scopesFor(loggedIn, {})).toEqual([undefined, undefined, true]);
    expect(codeOf(await decide({ audience, scopes: "orders.read" }, { found: none }))).toBe(
      "PermissionDenied",
    );
  });
});

describe("the token", () => {
  it.each<[string, Record<string, string>]>([
    ["no header", {}],
    ["an empty header", { authorization: "" }],
    ["a different scheme", { authorization: "Basic YTpi" }],
    ["two tokens that Envoy joined", { authorization: "Bearer a.b.c,Bearer a.b.c" }],
    ["a token with a line break", { authorization: "Bearer a.b\n.c" }],
  ])("is missing with %s", async (_name, headers) => {
    expect(codeOf(await decide({ audience }, { headers }))).toBe("Unauthenticated");
  });

  it("is also read from raw headers, unless there are two", async () => {
    const raw = { key: "Authorization", rawValue: Buffer.from("Bearer a.b.c") };
    const ask = async (...headers: (typeof raw)[]) =>
      codeOf(await decide({ audience }, { headers: {}, http: { headerMap: { headers } } }));
    expect([await ask(raw), await ask(raw, raw)]).toEqual(["OK", "Unauthenticated"]);
  });

  it("goes upstream only if the route says so", async () => {
    const removed = ({ httpResponse }: CheckResponse) =>
      httpResponse?.case === "okResponse" ? httpResponse.value.headersToRemove : undefined;
    expect(removed(await decide({ audience }))).toContain("authorization");
    expect(removed(await decide({ audience, "forward-token": "true" }))).not.toContain("authorization");
  });
});

it("rethrows errors that are not about the token, so that Envoy denies with its own status", async () => {
  const fails = async () => {
    throw refuse("STORE_UNAVAILABLE", "the store is away");
  };
  const request = { contextExtensions: { audience }, request: { http: { headers: bearer } } };
  const check = createCheck({ findTokenHolder: fails, issuerUrl });
  await expect(check(create(AttributeContextSchema, request))).rejects.toThrow(/store is away/);
});

describe("the encoded request", () => {
  const encode = (attributes: MessageInitShape<typeof AttributeContextSchema>) =>
    toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes }));
  const address = { address: { case: "socketAddress", value: { address: "127.0.0.1" } } } as const;
  const headers = { ...bearer, cookie: "secret" };
  const bytes = encode({
    source: { address },
    contextExtensions: { audience, scopes: "orders.read" },
    request: { time: { seconds: -1n, nanos: 5 }, http: { id: "1", method: "GET", size: -1n, headers } },
  });
  /** Whether the server allows a request with these bytes; it does not if they are not a message. */
  async function isAllowed(given: Uint8Array): Promise<boolean> {
    const check = createCheck({ findTokenHolder: findIn(holder), issuerUrl });
    try {
      return codeOf(await check(fromBinary(CheckRequestSchema, given).attributes)) === "OK";
    } catch {
      return false;
    }
  }
  /** With additional context extensions, which decoding merges into the request. */
  const isAllowedWith = (...extensions: [string, string][]) =>
    isAllowed(Buffer.concat([bytes, ...extensions.map(([name, value]) => encodeExtension(name, value))]));

  it("never allows more if it is truncated", async () => {
    expect(await isAllowed(bytes)).toBe(true);
    for (let end = 0; end < bytes.length; end++) expect(await isAllowed(bytes.subarray(0, end))).toBe(false);
  });

  it("never allows more if one bit is flipped, as long as the route and the token still match", async () => {
    for (let at = 0; at < bytes.length; at++)
      for (const bit of [1, 2, 4, 8, 16, 32, 64, 128]) {
        const changed = flipBit(bytes, at, bit);
        if (!(await isAllowed(changed))) continue;
        const { contextExtensions, request } = fromBinary(CheckRequestSchema, changed).attributes ?? {};
        expect(contextExtensions).toMatchObject({ audience });
        expect(request?.http?.headers.authorization?.slice("Bearer ".length)).toBe("a.b.c");
      }
  });

  it("rejects unknown requirements, even under the name __proto__", async () => {
    expect(await isAllowedWith(["roles", "user"])).toBe(true);
    expect(await isAllowedWith(["__proto__", "user"])).toBe(false);
    expect(await isAllowedWith(["constructor", "user"])).toBe(false);
  });

  it("applies the last of two values with the same name", async () => {
    expect(await isAllowedWith(["scopes", "orders.write"])).toBe(false);
    expect(await isAllowedWith(["scopes", "orders.write"], ["scopes", "orders.read"])).toBe(true);
  });

  it("is decided separately for tokens with the same ending, and for other requirements", async () => {
    const ask = (authorization: string, scopes: string) =>
      isAllowed(
        encode({
          contextExtensions: { audience, scopes },
          request: { http: { headers: { authorization } } },
        }),
      );
    expect(await ask("Bearer a.b.c", "orders.read")).toBe(true);
    expect(await ask("Bearer x.b.c", "orders.read")).toBe(false);
    expect(await ask("Bearer a.b.c", "orders.write")).toBe(false);
    expect(await ask("Bearer a.b.c", "orders.read")).toBe(true);
  });
});

describe("a decision", () => {
  it("is cached until 4,096 newer ones of any holders replace it", async () => {
    const [first, ...rest] = Array.from({ length: 130 }, () => ({ ...holder }));
    const kept = await decide({ audience }, { found: first });
    expect(await decide({ audience }, { found: first })).toBe(kept);
    for (const found of rest)
      for (let route = 0; route < 32; route++) await decide({ audience: `https://${route}.test` }, { found });
    expect(await decide({ audience }, { found: first })).not.toBe(kept);
  });
});

/** The bytes of an additional context extension, which may follow a request. */
function encodeExtension(name: string, value: string): Buffer {
  const [key, text] = [Buffer.from(name), Buffer.from(value)];
  const entry = Buffer.concat([Buffer.of(0x0a, key.length), key, Buffer.of(0x12, text.length), text]);
  const attributes = Buffer.concat([Buffer.of(0x52, entry.length), entry]);
  return Buffer.concat([Buffer.of(0x0a, attributes.length), attributes]);
}

describe("the token cache", () => {
  /** Tokens whose user exists as long as `user` says so. */
  const setUp = ({ isOpen = false } = {}) => {
    const state = {
      user: { userId: "user:1", role: "user", generation: "1" } as object | undefined,
      nowMs: 0,
      isKeyKnown: true,
    };
    const verified = vi.fn(async (token: string) =>
      token === "good" ? { ok: true, ...claims } : { ok: false, reason: "BAD_SIGNATURE", message: "no" },
    );
    const looked = vi.fn(async () => state.user);
    const find = createHolders({
      issuer: { check: verified, acceptsKey: () => state.isKeyKnown } as never,
      accounts: { users: isOpen ? undefined : { find: looked }, clients: {}, revocations: {} } as never,
      now: () => new Date(state.nowMs),
      monotonicMs: () => state.nowMs,
    });
    return { state, verified, looked, find: async (token: string) => find(token) };
  };

  it("keeps the signature check, and the holder for a second", async () => {
    const { state, verified, looked, find } = setUp();
    for (let i = 0; i < 3; i++) expect(await find("good")).toMatchObject({ subject: "ada", role: "user" });
    expect([verified, looked].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
    state.nowMs = 1000;
    await find("good");
    expect([verified, looked].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
  });

  it.each([
    ["the token expired", { nowMs: claims.expiresAt.getTime() }, /expired/],
    ["its key was retired", { isKeyKnown: false }, /key/],
    ["its user was removed a second ago", { user: undefined, nowMs: 1000 }, /no longer accepted/],
    ["its user was replaced a second ago", { user: { generation: "2" }, nowMs: 1000 }, /no longer accepted/],
  ])("ends when %s", async (_, change, message) => {
    const { state, find } = setUp();
    await find("good");
    Object.assign(state, change);
    await expect(find("good")).rejects.toThrow(message);
  });

  it("keeps no log-in on an open server, where anyone can use any name", async () => {
    await expect(setUp({ isOpen: true }).find("good")).rejects.toThrow(/--auth open/);
  });

  it("keeps no invalid token: each attempt is verified", async () => {
    const { verified, find } = setUp();
    for (let i = 0; i < 2; i++) await expect(find("bad")).rejects.toThrow(/refused/);
    expect(verified).toHaveBeenCalledTimes(2);
  });
});

it("a call may be as large as a request head", () => {
  expect(findMessageLimit(Authorization.method.check, 4 * 1024 * 1024, envoyProfiles)).toBe(256 * 1024);
});
