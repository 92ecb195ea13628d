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
  { found = holder, headers = { authorization: "Bearer a.b.c" }, hasUrl = true, http = {} } = {},
): Promise<CheckResponse> {
  const attributes = { contextExtensions: extensions, request: { http: { headers, ...http } } };
  const check = createCheck({
    findTokenHolder: findIn(found),
    issuerUrl: hasUrl ? issuerUrl : undefined,
  });
  return check(create(AttributeContextSchema, attributes));
}
const codeOf = ({ status }: CheckResponse) => status?.code ?? 0;
const messageOf = ({ status }: CheckResponse) => status?.message;

describe("a route's requirements", () => {
  it("accept a token for the route's audience", async () => {
    expect(codeOf(await decide({ audience }))).toBe(0);
  });

  it("accept a token for this server, from a log-in or for its URL, if the route names no audience", async () => {
    expect(codeOf(await decide({}, { found: loggedIn }))).toBe(0);
    expect(codeOf(await decide({}))).toBe(Code.Unauthenticated);
    const own = { ...holder, access: { ...access, audiences: [issuerUrl] } };
    expect(codeOf(await decide({}, { found: own }))).toBe(0);
  });

  it("reject everyone if there is neither an audience nor a server URL", async () => {
    const decision = await decide({}, { found: loggedIn, hasUrl: false });
    expect([codeOf(decision), messageOf(decision)]).toEqual([
      Code.PermissionDenied,
      expect.stringContaining("--issuer-url"),
    ]);
  });

  it.each([
    { scope: "orders.read" },
    { Audience: audience },
    { "forward-token": "yes" },
    { audience: "" },
    { roles: "" },
    { scopes: " " },
  ])("reject everyone if they are not understood: %j", async (extensions) => {
    expect(codeOf(await decide({ audience, ...extensions } as Record<string, string>))).toBe(
      Code.PermissionDenied,
    );
  });

  it("can be several scopes, all of which a scoped token needs", async () => {
    expect(codeOf(await decide({ audience, scopes: "orders.read" }))).toBe(0);
    const refused = await decide({ audience, scopes: "orders.read orders.write" });
    expect([codeOf(refused), messageOf(refused)]).toEqual([
      Code.PermissionDenied,
      "the token needs the scope orders.write",
    ]);
  });

  it("reject devices unless they name the device role", async () => {
    const device: TokenHolder = { ...loggedIn, subject: "device-1", role: "device" };
    expect(codeOf(await decide({}, { found: device }))).toBe(Code.PermissionDenied);
    expect(codeOf(await decide({ scopes: "payroll.write" }, { found: device }))).toBe(Code.PermissionDenied);
    expect(codeOf(await decide({ roles: "device" }, { found: device }))).toBe(0);
  });

  it("are denied with a short message and without copying if they are large", async () => {
    const refused = await decide({ audience, scopes: "a ".repeat(1_000_000) });
    expect([codeOf(refused), messageOf(refused)]).toEqual([
      Code.PermissionDenied,
      "the route has context extensions of 2000040 characters; the limit is 4096",
    ]);
    expect(messageOf(await decide({ audience, [`x${"y".repeat(3000)}`]: "" }))?.length).toBeLessThan(300);
  });

  it("can list several roles, one of which is enough", async () => {
    expect(codeOf(await decide({ audience, roles: "auditor user" }))).toBe(0);
    expect(codeOf(await decide({ audience, roles: "auditor admin" }))).toBe(Code.PermissionDenied);
  });
});

describe("the token", () => {
  it.each([
    ["no header", {}],
    ["an empty header", { authorization: "" }],
    ["a different scheme", { authorization: "Basic YTpi" }],
    ["two tokens that Envoy joined", { authorization: "Bearer a.b.c,Bearer a.b.c" }],
    ["a token with a line break", { authorization: "Bearer a.b\n.c" }],
  ])("is missing with %s", async (_name, headers) => {
    expect(codeOf(await decide({ audience }, { headers: headers as { authorization: string } }))).toBe(
      Code.Unauthenticated,
    );
  });

  it("is also read from raw headers, unless there are two", async () => {
    const raw = { key: "Authorization", rawValue: Buffer.from("Bearer a.b.c") };
    const ask = (...list: (typeof raw)[]) =>
      decide(
        { audience },
        { headers: {} as { authorization: string }, http: { headerMap: { headers: list } } },
      );
    expect(codeOf(await ask(raw))).toBe(0);
    expect(codeOf(await ask(raw, raw))).toBe(Code.Unauthenticated);
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
  const attributes = create(AttributeContextSchema, {
    contextExtensions: { audience },
    request: { http: { headers: { authorization: "Bearer a.b.c" } } },
  } satisfies MessageInitShape<typeof AttributeContextSchema>);
  const check = createCheck({ findTokenHolder: fails, issuerUrl });
  await expect(check(attributes)).rejects.toThrow(/store is away/);
});

describe("the encoded request", () => {
  const bytes = toBinary(
    CheckRequestSchema,
    create(CheckRequestSchema, {
      attributes: {
        source: { address: { address: { case: "socketAddress", value: { address: "127.0.0.1" } } } },
        contextExtensions: { audience, scopes: "orders.read" },
        request: {
          time: { seconds: -1n, nanos: 5 },
          http: {
            id: "1",
            method: "GET",
            size: -1n,
            headers: { authorization: "Bearer a.b.c", cookie: "secret" },
          },
        },
      },
    }),
  );
  /**
   * Decides as the server does with these bytes.
   *
   * @returns undefined if they are not a message
   */
  async function decideOn(given: Uint8Array): Promise<CheckResponse | undefined> {
    const check = createCheck({ findTokenHolder: findIn(holder), issuerUrl });
    try {
      return await check(fromBinary(CheckRequestSchema, given).attributes);
    } catch {
      return undefined;
    }
  }
  const isAllowed = async (given: Uint8Array): Promise<boolean> => {
    const decision = await decideOn(given);
    return decision !== undefined && codeOf(decision) === 0;
  };

  it("decide", async () => {
    expect(await isAllowed(bytes)).toBe(true);
  });

  it("never allows more if it is truncated", async () => {
    for (let end = 0; end < bytes.length; end++) expect(await isAllowed(bytes.subarray(0, end))).toBe(false);
  });

  it("never allows more if one bit is flipped, as long as the route and the token still match", async () => {
    for (let at = 0; at < bytes.length; at++)
      for (const bit of [1, 2, 4, 8, 16, 32, 64, 128]) {
        const changed = Uint8Array.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ bit;
        if (!(await isAllowed(changed))) continue;
        const { contextExtensions, request } = fromBinary(CheckRequestSchema, changed).attributes ?? {};
        expect(contextExtensions).toMatchObject({ audience });
        expect(request?.http?.headers.authorization?.slice("Bearer ".length)).toBe("a.b.c");
      }
  });

  it("rejects unknown requirements, even under the name __proto__", async () => {
    expect(await isAllowed(withExtension(bytes, "roles", "user"))).toBe(true);
    expect(await isAllowed(withExtension(bytes, "__proto__", "user"))).toBe(false);
    expect(await isAllowed(withExtension(bytes, "constructor", "user"))).toBe(false);
  });

  it("applies the last of two values with the same name", async () => {
    expect(await isAllowed(withExtension(bytes, "scopes", "orders.write"))).toBe(false);
    const twice = withExtension(withExtension(bytes, "scopes", "orders.write"), "scopes", "orders.read");
    expect(await isAllowed(twice)).toBe(true);
  });

  it("is decided separately for tokens with the same ending, and for other requirements", async () => {
    const ask = (authorization: string, scopes: string) => {
      const contextExtensions = { audience, scopes };
      const attributes = { contextExtensions, request: { http: { headers: { authorization } } } };
      return isAllowed(toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes })));
    };
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

/** The bytes of a request followed by an additional context extension, which decoding merges into it. */
function withExtension(bytes: Uint8Array, name: string, value: string): Uint8Array {
  const [key, text] = [Buffer.from(name), Buffer.from(value)];
  const entry = Buffer.concat([Buffer.of(0x0a, key.length), key, Buffer.of(0x12, text.length), text]);
  const attributes = Buffer.concat([Buffer.of(0x52, entry.length), entry]);
  return Buffer.concat([bytes, Buffer.of(0x0a, attributes.length), attributes]);
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

  it("expires with the token", async () => {
    const { state, find } = setUp();
    await find("good");
    state.nowMs = claims.expiresAt.getTime();
    await expect(find("good")).rejects.toThrow(/expired/);
  });

  it("keeps no log-in on an open server, where anyone can use any name", async () => {
    const { find } = setUp({ isOpen: true });
    await expect(find("good")).rejects.toThrow(/--auth open/);
  });

  it("expires as soon as the key is retired", async () => {
    const { state, find } = setUp();
    await find("good");
    state.isKeyKnown = false;
    await expect(find("good")).rejects.toThrow(/key/);
  });

  it("outlives a removed user by at most a second", async () => {
    for (const change of [{ user: undefined }, { user: { generation: "2" } }]) {
      const { state, find } = setUp();
      await find("good");
      Object.assign(state, change, { nowMs: 1000 });
      await expect(find("good")).rejects.toThrow(/no longer accepted/);
    }
  });

  it("keeps no invalid token: each attempt is verified", async () => {
    const { verified, find } = setUp();
    for (let i = 0; i < 2; i++) await expect(find("bad")).rejects.toThrow(/refused/);
    expect(verified).toHaveBeenCalledTimes(2);
  });
});

describe("a call", () => {
  it("may be as large as a request head", () => {
    const method = Authorization.method.check;
    expect(findMessageLimit(method, 4 * 1024 * 1024, envoyProfiles)).toBe(256 * 1024);
  });
});
