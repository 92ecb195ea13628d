import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { refuse, refuseForNow } from "../../src/errors.ts";
import { createAnswerPace } from "../../src/server/answer-pace.ts";
import { serveProbe } from "./probe.ts";
import { connectHttp2, request } from "./raw.ts";

const me = (): string => "me";
const attacker = (): string => "attacker";

describe("the pace of answers outside calls", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "setImmediate", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  /**
   * Sends answers of 1 ms each to one client.
   *
   * @returns how many were sent and how many are waiting
   */
  function flood(count: number) {
    const pace = createAnswerPace();
    let sent = 0;
    let taken = 0;
    const send = (): void => {
      sent += 1;
    };
    for (let i = 0; i < count; i += 1) if (pace.send({ costMs: 1, client: attacker, send })) taken += 1;
    return { pace, taken, countSent: () => sent };
  }

  it("sends a single answer at once", () => {
    expect(flood(1).countSent()).toBe(1);
  });

  it("spends a fifth of the time on them", async () => {
    const { pace, countSent } = flood(1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(countSent()).toBeGreaterThan(195);
    expect(countSent()).toBeLessThanOrEqual(206);
    await vi.advanceTimersByTimeAsync(4100);
    expect([countSent(), pace.waiting]).toEqual([1000, 0]);
  });

  it("sends them in small rounds, however late the event loop is", async () => {
    const { countSent } = flood(1000);
    expect(countSent()).toBe(5);
    await vi.advanceTimersToNextTimerAsync();
    expect(countSent()).toBeLessThanOrEqual(10);
  });

  it("alternates between clients, however many answers one of them awaits", async () => {
    const { pace, countSent } = flood(1000);
    const onSent = vi.fn();
    pace.send({ costMs: 1, client: me, send: onSent });
    const before = countSent();
    await vi.advanceTimersByTimeAsync(10);
    expect(onSent).toHaveBeenCalledOnce();
    expect(countSent() - before).toBeLessThanOrEqual(6);
  });

  it("spends no time on disconnected clients", async () => {
    const { pace } = flood(5);
    const onSent = vi.fn();
    for (let i = 0; i < 1000; i += 1)
      pace.send({ costMs: 1, client: attacker, isGone: () => true, send: () => {} });
    pace.send({ costMs: 1, client: attacker, send: onSent });
    await vi.advanceTimersByTimeAsync(10);
    expect([onSent.mock.calls.length, pace.waiting]).toEqual([1, 0]);
  });

  it("has no backlog after a pause", async () => {
    const { pace, countSent } = flood(100);
    await vi.advanceTimersByTimeAsync(10_000);
    pace.send({ costMs: 1, client: attacker, send: () => {} });
    await vi.advanceTimersByTimeAsync(0);
    expect([countSent(), pace.waiting]).toEqual([100, 0]);
  });

  it("refuses more than it can hold, and leaves room for the answers of other clients", () => {
    const { pace, taken } = flood(20_000);
    expect([taken, pace.waiting]).toEqual([8005, 8000]);
    expect(pace.send({ costMs: 1, client: me, send: () => {} })).toBe(true);
    for (let i = 0; i < 20_000; i += 1) pace.send({ costMs: 1, client: () => `client ${i}`, send: () => {} });
    expect(pace.waiting).toBe(10_000);
  });

  it("delays retryable refusals of calls, and no other errors", async () => {
    const { pace } = flood(100);
    expect(pace.waitIfBusy(refuse("KEY_NOT_FOUND", "no key"), me)).toBeUndefined();
    expect(pace.waitIfBusy(refuse("QUOTA_EXCEEDED", "too many"), me)).toBeUndefined();
    const onSent = vi.fn();
    void pace.waitIfBusy(refuseForNow("SERVER_BUSY", "busy", 1000), attacker)?.then(onSent);
    await vi.advanceTimersByTimeAsync(400);
    expect(onSent).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(150);
    expect(onSent).toHaveBeenCalledOnce();
  });
});

const floods = {
  "paths that do not exist": { ":path": "/nope" },
  "methods that a path does not take": { ":path": "/livez", ":method": "DELETE" },
  "RPCs that do not exist": { ":path": "/a.b/C", ":method": "POST", "content-type": "application/grpc" },
  "requests of other sites": { ":path": "/probe/look", origin: "http://evil.example" },
  pages: { ":path": "/livez" },
};

it.each(Object.entries(floods))("do not delay a call that arrives after them: %s", async (_what, head) => {
  const { url } = await serveProbe({ look: () => ({}) });
  const session = connectHttp2(url);
  const order: string[] = [];
  // All in one segment. Without pacing, they would be answered in order.
  const flood = Array.from({ length: 300 }, () => request(session, head).then(() => order.push("flood")));
  const call = request(session, { ":path": "/probe/look" }).then(({ headers }) => {
    expect(headers[":status"]).toBe(200);
    order.push("call");
  });
  await Promise.all([...flood, call]);
  expect(order.indexOf("call")).toBeLessThan(150);
});
