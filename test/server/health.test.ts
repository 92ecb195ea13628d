import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { refusal } from "../support/refusal.ts";
import { serveProbe } from "./probe.ts";
import type { LocalServer } from "./serve.ts";

const name = "probing.Probe";

let local: LocalServer;
let health: Client<typeof Health>;
beforeEach(async () => {
  local = await serveProbe();
  const sessionManager = new Http2SessionManager(local.url);
  onTestFinished(() => sessionManager.abort());
  health = createClient(Health, createGrpcTransport({ baseUrl: local.url, sessionManager }));
});

describe("Health.Check", () => {
  it.each(["", name])("says SERVING of %j", async (service) => {
    expect((await health.check({ service })).status).toBe(Status.SERVING);
  });

  it("refuses a service that there is not", async () => {
    expect(await refusal(health.check({ service: "probing.Nobody" }))).toEqual({
      code: "NotFound",
      reason: "SERVICE_UNKNOWN",
    });
  });

  it("says NOT_SERVING of a service that was turned off, and SERVING of the others", async () => {
    local.server.health.set(name, false);
    expect((await health.check({ service: name })).status).toBe(Status.NOT_SERVING);
    expect((await health.check({})).status).toBe(Status.SERVING);
  });
});

describe("Health.List", () => {
  it("lists the status of the server and of every service", async () => {
    const { statuses } = await health.list({});
    expect(Object.entries(statuses).map(([service, { status }]) => [service, status])).toEqual([
      ["", Status.SERVING],
      [name, Status.SERVING],
    ]);
  });
});

describe("Health.Watch", () => {
  it("answers at once, and then only when the status changes", async () => {
    const next = watch(name);
    expect(await next()).toBe(Status.SERVING);
    local.server.health.set(name, true);
    local.server.health.set("", false);
    local.server.health.set(name, false);
    expect(await next()).toBe(Status.NOT_SERVING);
    local.server.health.set(name, true);
    expect(await next()).toBe(Status.SERVING);
  });

  it("tells a slow watcher of the newest status only", async () => {
    const next = watch(name);
    expect(await next()).toBe(Status.SERVING);
    local.server.health.set(name, false);
    local.server.health.set(name, true);
    local.server.health.set(name, false);
    expect(await next()).toBe(Status.NOT_SERVING);
  });

  it("says SERVICE_UNKNOWN of a service that there is not, and stays open until there is", async () => {
    const next = watch("probing.Later");
    expect(await next()).toBe(Status.SERVICE_UNKNOWN);
    local.server.health.set("probing.Later", true);
    expect(await next()).toBe(Status.SERVING);
  });

  it("serves several watchers of one service", async () => {
    const watchers = [watch(name), watch(name), watch("")];
    for (const next of watchers) expect(await next()).toBe(Status.SERVING);
    local.server.health.set(name, false);
    local.server.health.set("", false);
    for (const next of watchers) expect(await next()).toBe(Status.NOT_SERVING);
  });

  it("says NOT_SERVING when the server stops, and ends with UNAVAILABLE", async () => {
    const watchers = [watch(name), watch("")];
    for (const next of watchers) expect(await next()).toBe(Status.SERVING);
    local.server.health.shutDown();
    for (const next of watchers) {
      expect(await next()).toBe(Status.NOT_SERVING);
      expect(await refusal(next())).toEqual({ code: "Unavailable", reason: "SHUTTING_DOWN" });
    }
    local.server.health.set(name, true);
    expect((await health.check({ service: name })).status).toBe(Status.NOT_SERVING);
  });
});

describe("GET /readyz and /livez", () => {
  it("say that the server is ready and alive", async () => {
    expect((await fetch(`${local.url}/readyz`)).status).toBe(200);
    expect((await fetch(`${local.url}/livez`)).status).toBe(200);
  });

  it("say that a server which stops is alive and not ready", async () => {
    local.server.health.shutDown();
    expect((await fetch(`${local.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${local.url}/livez`)).status).toBe(200);
  });
});

/** Watches a service; each call gives the next status, undefined at the end. */
function watch(service: string): () => Promise<Status | undefined> {
  const statuses = health.watch({ service })[Symbol.asyncIterator]();
  return async () => {
    const next = await statuses.next();
    return next.done === true ? undefined : next.value.status;
  };
}
