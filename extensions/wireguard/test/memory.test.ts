/** Keys in the server's memory: how long they stay, and that they are overwritten. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { outcomeOf } from "../../../test/support/refusal.ts";
import { agreementLifetimeMs, createAgreements, type PendingAgreement } from "../agreements.ts";
import { createGatewayLink, reportTimeoutMs } from "../gateway.ts";

const filled = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const zeros = filled(0);
const gatewayKey = filled(9);
const tunnelId = "tunnel";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a pending agreement", () => {
  function makePending(epoch = 1): PendingAgreement {
    const keys = { presharedKey: filled(1), peerConfirmation: filled(2), gatewayConfirmation: filled(3) };
    return { epoch, wireguardKey: filled(8), gatewayWireguardKey: gatewayKey, keys };
  }
  function start() {
    const agreements = createAgreements();
    const pending = makePending();
    agreements.start(tunnelId)(pending);
    return { agreements, pending };
  }

  it("ends after 15 seconds, and its keys are overwritten", () => {
    const { agreements, pending } = start();
    vi.advanceTimersByTime(agreementLifetimeMs - 1);
    expect(pending.keys.presharedKey).toEqual(filled(1));
    vi.advanceTimersByTime(1);
    expect(Object.values(pending.keys)).toEqual([zeros, zeros, zeros]);
    expect(() => agreements.take(tunnelId, 1)).toThrow(/agree again/);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends with the next one of its tunnel, even if it was made later", () => {
    const agreements = createAgreements();
    const [slow, ended, newest] = [makePending(), makePending(), makePending(2)];
    const finishSlow = agreements.start(tunnelId);
    vi.advanceTimersByTime(1000);
    agreements.start(tunnelId)(ended);
    vi.advanceTimersByTime(1000);
    agreements.start(tunnelId)(newest);
    finishSlow(slow);
    expect([slow, ended].map(({ keys }) => keys.presharedKey)).toEqual([zeros, zeros]);
    expect(agreements.take(tunnelId, 2)).toBe(newest);
  });

  it("is overwritten when the server stops, unless a caller has taken it", () => {
    const { agreements, pending } = start();
    agreements.close();
    expect(Object.values(pending.keys)).toEqual([zeros, zeros, zeros]);
    expect(vi.getTimerCount()).toBe(0);
    const { agreements: others, pending: taken } = start();
    expect(others.take(tunnelId, 1)).toBe(taken);
    others.close();
    expect(taken.keys.presharedKey).toEqual(filled(1));
  });
});

describe("a key for the gateway's agent", () => {
  function connect() {
    const link = createGatewayLink();
    const session = link.connect({ wireguardKey: gatewayKey, endpoint: "vpn.example.com:51820" });
    const never = new AbortController().signal;
    const deliver = (epoch = 1, toGateway = gatewayKey) =>
      outcomeOf(
        link.deliver({ tunnelId, wireguardKey: filled(8), epoch, presharedKey: filled(1) }, toGateway, never),
      );
    const report = (epoch = 1, id = tunnelId) => link.report({ tunnelId: id, epoch, applied: true });
    return { link, session, never, deliver, report };
  }

  it("waits ten seconds for the report", async () => {
    const { session, deliver, report } = connect();
    const silent = deliver();
    session.takeKeys();
    await vi.advanceTimersByTimeAsync(reportTimeoutMs);
    expect(await silent).toBe("GATEWAY_SILENT");
    expect(report()).toBe(false);
  });

  it("is sent as a copy, so that it never becomes an empty key when the agent disconnects", async () => {
    const { session, deliver } = connect();
    const failed = deliver();
    const [sent] = session.takeKeys();
    session.close();
    expect(await failed).toBe("GATEWAY_DISCONNECTED");
    expect(sent?.presharedKey).toEqual(filled(1));
  });

  it("is sent once, and only to an agent with the right WireGuard key", async () => {
    const { session, deliver, report } = connect();
    expect(await deliver(1, filled(7))).toBe("GATEWAY_DISCONNECTED");
    const delivered = deliver();
    expect([session.takeKeys().length, session.takeKeys().length]).toEqual([1, 0]);
    report();
    expect(await delivered).toBe("answer");
  });

  it("is sent after the change of its peer, even if both come while the stream reads the store", async () => {
    const { link, session, deliver, report } = connect();
    session.takeChanged();
    link.peerChanged(tunnelId);
    const delivered = deliver();
    expect(session.takeKeys()).toEqual([]);
    expect(session.takeChanged()).toEqual([tunnelId]);
    expect(session.takeKeys()).toHaveLength(1);
    report();
    expect(await delivered).toBe("answer");
  });

  it("is reported once, after it is sent, with its own epoch and tunnel", async () => {
    const { session, deliver, report } = connect();
    const delivered = deliver();
    expect(report()).toBe(false);
    session.takeKeys();
    expect([report(0), report(1, "other"), report(), report()]).toEqual([false, false, true, false]);
    expect(await delivered).toBe("answer");
  });

  it("never follows one with a later epoch", async () => {
    const { session, deliver, report } = connect();
    const newer = deliver(2);
    expect(await deliver(1)).toBe("EPOCH_USED");
    expect(session.takeKeys().map(({ epoch }) => epoch)).toEqual([2]);
    report(2);
    expect(await newer).toBe("answer");
  });

  it("wakes the stream, even if it arrives before the stream waits", async () => {
    const { session, never, deliver, report } = connect();
    const delivered = deliver();
    await session.wait(1000, never);
    expect(session.takeKeys()).toHaveLength(1);
    report();
    expect(await delivered).toBe("answer");
  });
});
