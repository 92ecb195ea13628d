import { type Client, createClient, createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { Access } from "#gen/qsp/access_pb.ts";
import { callerKey } from "../../src/calls/call-values.ts";
import { refuse } from "../../src/errors.ts";
import { type AccessPolicy, requireAccess, requireScope } from "../../src/server/interceptors/access.ts";
import { Probe } from "../gen/probing/probe_pb.ts";
import { Library } from "../gen/testing/library_pb.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { connectGrpc } from "./probe.ts";
import { jsonRefusalOf } from "./raw.ts";
import { serve } from "./serve.ts";

const data = Buffer.from("hello");
const ada = { role: "user" as const, subject: "ada", issuedAt: new Date(0), expiresAt: new Date(0) };
const withTicket = { headers: { authorization: "Ticket of ada" } };
const missing = { code: "Unauthenticated", reason: "TOKEN_MISSING" };

describe("requireAccess", () => {
  it("accepts methods that declare access", () => {
    expect(() => requireAccess([...PqcService.methods, ...TokenService.methods])).not.toThrow();
  });

  it("accepts reflection and health, whose third-party protos declare none", () => {
    expect(() => requireAccess(Health.methods)).not.toThrow();
  });

  it("names an RPC that declares no access", () => {
    expect(() => requireAccess(Probe.methods)).toThrow(/probing\.Probe\.Ask .*qsp\.access/);
  });

  it("accepts a service whose profile has a row for each of its RPCs, and names one without a row", () => {
    const row = { access: Access.AUTHENTICATED, scope: "probe.ask", comment: "Asks." };
    const rpcs = Object.fromEntries(Probe.methods.map(({ name }) => [name, row]));
    const profile = { restStyle: "google", comment: "Probes.", rpcs } as const;
    expect(() => requireAccess(Probe.methods, { [Probe.typeName]: profile })).not.toThrow();
    const { Look: _missing, ...others } = rpcs;
    const incomplete = { [Probe.typeName]: { ...profile, rpcs: others } };
    expect(() => requireAccess(Probe.methods, incomplete)).toThrow(/^probing\.Probe\.Look .*profile/);
  });

  it("keeps a server with a policy from starting", async () => {
    const services = [createServiceImplSpec<typeof Library>(Library, {} as never)];
    const access = policy("open");
    await expect(serve({ services, access })).rejects.toThrow(/testing\.Library\.\w+/);
  });
});

/** A PUBLIC call, one that is AUTHENTICATED, and one that requires a TOKEN. */
const calls: Record<string, (clients: Clients, options?: typeof withTicket) => Promise<unknown>> = {
  public: ({ tokens }, options) => tokens.hello({}, options),
  authenticated: ({ pqc }, options) => pqc.signData({ data }, options),
  token: ({ tokens }, options) => tokens.getSecureData({}, options),
};

describe.each([
  ["open", "public", undefined],
  ["open", "authenticated", undefined],
  ["open", "token", missing],
  ["token", "public", undefined],
  ["token", "authenticated", missing],
  ["token", "token", missing],
] as const)("in mode %s, a call that is %s", (mode, kind, refused) => {
  const call = calls[kind] ?? (() => Promise.reject());

  it(refused === undefined ? "is answered without a token" : "is refused without a token", async () => {
    const clients = await serveFakes(policy(mode));
    expect(await outcomeOf(call(clients))).toEqual(refused);
  });

  it("is answered with a token", async () => {
    const clients = await serveFakes(policy(mode));
    expect(await outcomeOf(call(clients, withTicket))).toBeUndefined();
  });
});

describe("a token with scopes", () => {
  const scoped = (...scopes: string[]): AccessPolicy => ({
    mode: "token",
    authenticate: async () => ({ ...ada, scopes }),
  });
  const scopeMissing = { code: "PermissionDenied", reason: "SCOPE_MISSING" };

  it("allows the calls of its scopes", async () => {
    const { pqc, tokens } = await serveFakes(scoped("kms.sign", "pqc.use"));
    expect(await outcomeOf(pqc.signData({ data }, withTicket))).toBeUndefined();
    expect(await outcomeOf(tokens.getSecureData({}, withTicket))).toBeUndefined();
  });

  it("allows no other call", async () => {
    const { pqc, tokens } = await serveFakes(scoped("kms.sign", "pqc.user", "pqc"));
    expect(await outcomeOf(pqc.signData({ data }, withTicket))).toEqual(scopeMissing);
    expect(await outcomeOf(tokens.getSecureData({}, withTicket))).toEqual(scopeMissing);
  });

  it("cannot be used without any scope, or for a call that declares none", async () => {
    const { pqc } = await serveFakes(scoped());
    expect(await outcomeOf(pqc.signData({ data }, withTicket))).toEqual(scopeMissing);
    expect(() => requireScope("Ask", { ...ada, scopes: [""] }, () => "")).toThrow(
      /cannot be called with a token that has scopes/,
    );
  });

  it("receives the missing scope over HTTP (RFC 6750, section 3)", async () => {
    const { url } = await serveFakes(scoped("kms.sign"));
    const answer = await fetch(`${url}/api/secure`, withTicket);
    expect(answer.status).toBe(403);
    expect(answer.headers.get("www-authenticate")).toBe('Bearer error="insufficient_scope", scope="pqc.use"');
    expect(jsonRefusalOf(await answer.text())).toEqual({
      code: "PERMISSION_DENIED",
      reason: "SCOPE_MISSING",
    });
  });
});

describe("a call that requires a token", () => {
  it("passes the caller to its handler", async () => {
    const { tokens } = await serveFakes(policy("open"));
    expect((await tokens.getSecureData({}, withTicket)).subject).toBe("ada");
  });

  it("is not even validated without one", async () => {
    const { pqc } = await serveFakes(policy("token"));
    expect(await refusal(pqc.signData({}))).toEqual(missing);
  });

  it("accepts a token over REST", async () => {
    const { url } = await serveFakes(policy("open"));
    expect((await fetch(`${url}/api/secure`, withTicket)).status).toBe(200);
  });

  it("fails as a server fault if the check itself fails", async () => {
    const broken: AccessPolicy = {
      mode: "open",
      authenticate: async () => {
        throw new Error("the store is unavailable");
      },
    };
    const { tokens } = await serveFakes(broken);
    const fault = { code: "Internal", reason: "INTERNAL" };
    expect(await refusal(tokens.getSecureData({}, withTicket))).toEqual(fault);
  });
});

describe("health and reflection", () => {
  it.each(["open", "token"] as const)("are public in mode %s", async (mode) => {
    const { health } = await serveFakes(policy(mode));
    expect((await health.check({})).status).toBe(1);
  });
});

interface Clients {
  readonly url: string;
  readonly pqc: Client<typeof PqcService>;
  readonly tokens: Client<typeof TokenService>;
  readonly health: Client<typeof Health>;
}

function policy(mode: AccessPolicy["mode"]): AccessPolicy {
  return {
    mode,
    authenticate: async (authorization) => {
      if (authorization === withTicket.headers.authorization) return ada;
      throw refuse("TOKEN_MISSING", "no ticket");
    },
  };
}

/** Serves both services with minimal handlers. */
async function serveFakes(access: AccessPolicy): Promise<Clients> {
  const pqc: Partial<ServiceImpl<typeof PqcService>> = { signData: () => ({}) };
  const tokens: Partial<ServiceImpl<typeof TokenService>> = {
    hello: () => ({}),
    getSecureData: (_req, { values }) => ({ subject: values.get(callerKey)?.subject ?? "nobody" }),
  };
  const { url } = await serve({
    services: [
      createServiceImplSpec<typeof PqcService>(PqcService, pqc),
      createServiceImplSpec<typeof TokenService>(TokenService, tokens),
    ],
    access,
  });
  const transport = connectGrpc(url);
  return {
    url,
    pqc: createClient(PqcService, transport),
    tokens: createClient(TokenService, transport),
    health: createClient(Health, transport),
  };
}

/** How a call was refused; undefined if it was not. */
async function outcomeOf(call: Promise<unknown>) {
  const { refusals } = await outcomesOf([call]);
  return refusals[0];
}
