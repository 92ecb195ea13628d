import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { createCallsInProgress } from "../../src/server/calls-in-progress.ts";
import { Clients } from "../../src/server/clients.ts";

const method: DescMethod = PqcService.method.signData;

/** A server without calls. */
function createCalls(maxCalls: number, maxCallsPerUser = 0) {
  const clients = new Clients();
  const limits = { maxCalls, maxStreams: 10, maxCallsPerUser, maxStreamsPerUser: 0 };
  const calls = createCallsInProgress(limits, clients);
  /**
   * Starts calls from one client until one is refused.
   *
   * @returns how many were admitted, and a function that ends them
   */
  const begin = (name: string, most = Number.POSITIVE_INFINITY, called = method) => {
    const ends: (() => void)[] = [];
    for (; ends.length < most && !calls.isFullFor(called, () => name); ) {
      const held = calls.enter(called);
      const claim = clients.claim(name);
      calls.enterFor(called, claim);
      ends.push(() => {
        held.close();
        claim.close();
      });
    }
    return { count: ends.length, end: () => ends.forEach((end) => void end()) };
  };
  return { calls, clients, begin };
}

describe("a client's share", () => {
  it("is four fifths of all calls while it is alone, and leaves room for each client that comes later", () => {
    const { begin } = createCalls(1000);
    const counts = ["mallory", "mallory", "ada", "bob"].map((name) => begin(name).count);
    expect(counts).toEqual([800, 0, 160, 32]);
    expect(begin("carol").count).toBeGreaterThan(0);
  });

  it("is free again once its calls have ended", () => {
    const { begin } = createCalls(1000);
    begin("mallory").end();
    expect(begin("mallory").count).toBe(800);
  });

  it("is everything if the limit is small", () => {
    expect([1, 2, 3, 4].map((maxCalls) => createCalls(maxCalls).begin("ada").count)).toEqual([1, 2, 3, 4]);
  });

  it("is no more than the limit per user", () => {
    const { calls, clients, begin } = createCalls(1000, 250);
    begin("ada", 250);
    calls.enter(method);
    expect(() => calls.enterFor(method, clients.claim("ada"))).toThrow("already has 250 calls in progress");
    expect(calls.isCrowded()).toBe(false);
  });

  it("holds for health checks too, without a limit per user", () => {
    const { calls, clients, begin } = createCalls(1000, 250);
    const check = Health.method.check;
    expect(begin("mallory", Number.POSITIVE_INFINITY, check).count).toBe(800);
    calls.enter(check);
    expect(() => calls.enterFor(check, clients.claim("mallory"))).toThrow(calls.fullRefusal.message);
    expect(begin("ada", 250).count).toBe(250);
    expect(begin("proxy", Number.POSITIVE_INFINITY, check).count).toBeGreaterThan(0);
  });

  it("also refuses a call that the server has just counted", () => {
    const { calls, clients, begin } = createCalls(1000);
    begin("mallory");
    calls.enter(method);
    expect(() => calls.enterFor(method, clients.claim("mallory"))).toThrow(calls.fullRefusal.message);
    expect(calls.isCrowded()).toBe(true);
  });
});

describe("the resources of a client", () => {
  it("are the sum of its claims, and are released when these close, however often", () => {
    const clients = new Clients();
    const [first, second, other] = [clients.claim("ada"), clients.claim("ada"), clients.claim("bob")];
    first.add("bytes", 100);
    second.add("bytes", 20);
    other.add("bytes", 3);
    expect([first.sum("bytes"), second.sum("bytes"), other.sum("bytes")]).toEqual([120, 120, 3]);
    first.close();
    first.close();
    first.add("bytes", 7);
    expect([second.sum("bytes"), other.sum("bytes")]).toEqual([20, 3]);
  });

  it("stay within the limit across all claims", () => {
    const clients = new Clients();
    const [first, second] = [clients.claim("ada"), clients.claim("ada")];
    expect([first, second, first].map((claim) => claim.tryAcquire("calls", 2))).toEqual([true, true, false]);
    second.close();
    expect(first.tryAcquire("calls", 2)).toBe(true);
  });

  it("occupy no memory once the last claim is closed", () => {
    const clients = new Clients();
    const claims = ["ada", "bob", "ada"].map((name) => clients.claim(name));
    expect(clients.size).toBe(2);
    for (const claim of claims) claim.close();
    expect(clients.size).toBe(0);
    expect(clients.claim("ada").sum("calls")).toBe(0);
  });
});
