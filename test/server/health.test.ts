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
    const unknown = { code: "NotFound", reason: "SERVICE_UNKNOWN" };
    expect(await refusal(health.check({ service: "probing.Nobody" }))).toEqual(unknown);
  });

  it("reports NOT_SERVING for a disabled service, and SERVING for the others", async () => {
    local.server.health.set(name, false);
    expect((await health.check({ service: name })).status).toBe(Status.NOT_SERVING);
    expect((await health.check({})).status).toBe(Status.SERVING);
  });
});

it("Health.List lists the status of the server and of every service", async () => {
  const { statuses } = await health.list({});
  const serving = { status: Status.SERVING };
  expect(statuses).toMatchObject({ "": serving, [name]: serving });
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

it("GET /readyz and /livez report that a stopping server is alive but not ready", async () => {
  const statuses = async () =>
    Promise.all(["/readyz", "/livez"].map(async (path) => (await fetch(local.url + path)).status));
  expect(await statuses()).toEqual([200, 200]);
  local.server.health.shutDown();
  expect(await statuses()).toEqual([503, 200]);
});

/** Watches a service; each call returns the next status, undefined at the end. */
function watch(service: string): () => Promise<Status | undefined> {
  const statuses = health.watch({ service })[Symbol.asyncIterator]();
  return async () => {
    const next = await statuses.next();
    return next.done === true ? undefined : next.value.status;
  };
}
