import { type Client, createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, it } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { refusal } from "../support/refusal.ts";
import { connectGrpc, serveProbe } from "./probe.ts";
import type { LocalServer } from "./serve.ts";

const name = "probing.Probe";

let local: LocalServer;
let health: Client<typeof Health>;
beforeEach(async () => {
  local = await serveProbe();
  health = createClient(Health, connectGrpc(local.url));
});

describe("Health.Check", () => {
  it.each(["", name])("reports SERVING for %j", async (service) => {
    expect((await health.check({ service })).status).toBe(Status.SERVING);
  });

  it("rejects an unknown service", async () => {
    expect(await refusal(health.check({ service: "probing.Nobody" }))).toEqual({
      code: "NotFound",
      reason: "SERVICE_UNKNOWN",
    });
  });

  it("reports NOT_SERVING for a disabled service, and SERVING for the others", async () => {
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

  it("sends a slow watcher only the latest status", async () => {
    const next = watch(name);
    expect(await next()).toBe(Status.SERVING);
    local.server.health.set(name, false);
    local.server.health.set(name, true);
    local.server.health.set(name, false);
    expect(await next()).toBe(Status.NOT_SERVING);
  });

  it("reports SERVICE_UNKNOWN for an unknown service, and stays open until it exists", async () => {
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

  it("reports NOT_SERVING when the server stops, and ends with UNAVAILABLE", async () => {
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
  it("report that the server is ready and alive", async () => {
    expect((await fetch(`${local.url}/readyz`)).status).toBe(200);
    expect((await fetch(`${local.url}/livez`)).status).toBe(200);
  });

  it("report that a stopping server is alive but not ready", async () => {
    local.server.health.shutDown();
    expect((await fetch(`${local.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${local.url}/livez`)).status).toBe(200);
  });
});

/** Watches a service; each call returns the next status, undefined at the end. */
function watch(service: string): () => Promise<Status | undefined> {
  const statuses = health.watch({ service })[Symbol.asyncIterator]();
  return async () => {
    const next = await statuses.next();
    return next.done === true ? undefined : next.value.status;
  };
}
