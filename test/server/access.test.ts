import { once } from "node:events";
import { createClient, createServiceImplSpec } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { Access } from "#gen/qsp/access_pb.ts";
import { requireScope } from "../../src/calls/require-scope.ts";
import { refuse } from "../../src/errors.ts";
import { requireAccess, rolesFor } from "../../src/server/interceptors/access.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { Probe } from "../gen/probing/probe_pb.ts";
import { outcomeOf, refusal } from "../support/refusal.ts";
import {
  ada,
  connectGrpc,
  connectProbe,
  type ProbeBehaviour,
  profilesWith,
  serveAdmitting,
} from "./probe.ts";
import { jsonRefusalOf } from "./raw.ts";
import { serve } from "./serve.ts";

const services = [createServiceImplSpec<typeof PqcService>(PqcService, {})];
const refuseAll = async (): Promise<never> => {
  throw refuse("TOKEN_MISSING", "no token");
};

describe("requireAccess", () => {
  it("names an RPC that declares no access, except in third-party protos like health", () => {
    expect(() => requireAccess([...PqcService.methods, ...Health.methods])).not.toThrow();
    expect(() => requireAccess(Probe.methods)).toThrow(/probing\.Probe\.Ask .*qsp\.access/);
  });

  it("names an RPC without a row in the profile of its service", () => {
    const profiles = profilesWith(Access.AUTHENTICATED);
    expect(() => requireAccess(Probe.methods, profiles)).not.toThrow();
    const { Look: _missing, ...rpcs } = profiles[Probe.typeName]?.rpcs ?? {};
    const incomplete = { [Probe.typeName]: { ...profiles[Probe.typeName], rpcs } };
    expect(() => requireAccess(Probe.methods, incomplete as never)).toThrow(
      /^probing\.Probe\.Look .*profile/,
    );
  });

  it("keeps a server with a policy from starting", async () => {
    const started = serveAdmitting({}, refuseAll, { profiles: {} });
    await expect(started).rejects.toThrow(/probing\.Probe\.\w+/);
  });
});

describe("a caller without a token", () => {
  it("of an open server may make all calls except those that require a token", () => {
    const { hello, getSecureData } = TokenService.method;
    const methods = [hello, PqcService.method.signData, getSecureData];
    const users = ["user", "auditor", "admin"];
    expect(methods.map((method) => rolesFor(method, "open", {}))).toEqual([undefined, undefined, users]);
  });

  it("may check the health of a server, whose other calls do not even validate the request", async () => {
    const { url } = await serve({ services, access: { mode: "token", authenticate: refuseAll } });
    expect((await createClient(Health, connectGrpc(url)).check({})).status).toBe(1);
    const call = createClient(PqcService, connectGrpc(url)).signData({});
    expect(await refusal(call)).toEqual({ code: "Unauthenticated", reason: "TOKEN_MISSING" });
  });
});

describe("a token with scopes", () => {
  it.each([
    [["kms.sign", "probe.use"], "answer"],
    [["kms.sign", "probe.user", "probe"], "SCOPE_MISSING"],
    [[], "SCOPE_MISSING"],
  ])("admits its caller only to the calls of its scopes: %j", async (scopes, outcome) => {
    const { url } = await serveAdmitting({}, async () => ({ ...ada, scopes }));
    expect(await outcomeOf(connectProbe("gRPC", url).ask({}))).toBe(outcome);
  });

  it("cannot be used for a call that declares none", () => {
    const require = () => requireScope("Ask", { ...ada, scopes: [""] }, () => "");
    expect(require).toThrow(/cannot be called with a token that has scopes/);
  });

  it("receives the missing scope over HTTP (RFC 6750, section 3)", async () => {
    const { url } = await serveAdmitting({}, async () => ({ ...ada, scopes: ["kms.sign"] }));
    const answer = await fetch(`${url}/probe/look`);
    const challenge = 'Bearer error="insufficient_scope", scope="probe.use"';
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([403, challenge]);
    const refused = { code: "PERMISSION_DENIED", reason: "SCOPE_MISSING" };
    expect(jsonRefusalOf(await answer.text())).toEqual(refused);
  });
});

it("a check of a token that breaks is a server fault", async () => {
  const { url } = await serveAdmitting({}, async () => {
    throw new Error("the store is unavailable");
  });
  const fault = { code: "Internal", reason: "INTERNAL" };
  expect(await refusal(connectProbe("gRPC", url).ask({}))).toEqual(fault);
});

/** Streams whose callers stay admitted as long as a check passes. */
const sendOneAndWait: ProbeBehaviour = {
  async *watch(_item, { signal }) {
    yield {};
    await once(signal, "abort");
  },
};

it("a stream ends with the reason once its caller is removed", async () => {
  let isRemoved = false;
  let checks = 0;
  const check = async (): Promise<void> => {
    checks += 1;
    if (isRemoved) throw refuse("TOKEN_REVOKED", "the user was removed");
  };
  const revocation = { group: "ada", check };
  const { url } = await serveAdmitting(sendOneAndWait, async () => ({ ...ada, revocation }));
  const items = connectProbe("gRPC", url).watch({})[Symbol.asyncIterator]();
  await items.next();
  await expect.poll(() => checks).toBeGreaterThan(0);
  isRemoved = true;
  expect(await refusal(items.next())).toEqual({ code: "Unauthenticated", reason: "TOKEN_REVOKED" });
});

it("a stream continues while the check itself fails, and the failures are counted", async () => {
  const metrics = createMetrics();
  let checks = 0;
  const checked = Promise.withResolvers<void>();
  const check = async (): Promise<void> => {
    checks += 1;
    if (checks > 1) checked.resolve();
    throw refuse("STORE_UNAVAILABLE", "the store is away");
  };
  const revocation = { group: "ada", check };
  const { url } = await serveAdmitting(sendOneAndWait, async () => ({ ...ada, revocation }), { metrics });
  const ending = new AbortController();
  const items = connectProbe("gRPC", url).watch({}, { signal: ending.signal })[Symbol.asyncIterator]();
  await items.next();
  const next = refusal(items.next());
  await checked.promise;
  ending.abort();
  expect(await next).toMatchObject({ code: "Canceled" });
  const { text } = await metrics.expose();
  expect(text).toMatch(/^qsp_background_failures_total\{work="check_stream_callers"\} [1-9]/m);
});
