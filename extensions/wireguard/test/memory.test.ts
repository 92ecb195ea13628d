/** Keys in the server's memory: how long they stay, and that they are overwritten. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { refusal } from "../../../test/support/refusal.ts";
import { agreementLifetimeMs, createAgreements, type PendingAgreement } from "../agreements.ts";
import { createGatewayLink, reportTimeoutMs } from "../gateway.ts";

const filled = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const zeros = filled(0);
const gatewayKey = filled(9);

function makePending(epoch = 1): PendingAgreement {
  const keys = { presharedKey: filled(1), peerConfirmation: filled(2), gatewayConfirmation: filled(3) };
  return { epoch, wireguardKey: filled(8), gatewayWireguardKey: gatewayKey, keys };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a pending agreement", () => {
  it("ends after 15 seconds, and its keys are overwritten", () => {
    const agreements = createAgreements();
    const pending = makePending();
    agreements.start("tunnel")(pending);
    vi.advanceTimersByTime(agreementLifetimeMs - 1);
    expect(pending.keys.presharedKey).toEqual(filled(1));
    vi.advanceTimersByTime(1);
    expect(Object.values(pending.keys)).toEqual([zeros, zeros, zeros]);
    expect(() => agreements.take("tunnel", 1)).toThrow(/agree again/);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends with the next one of its tunnel, even if it was made later", () => {
    const agreements = createAgreements();
    const [slow, ended, newest] = [makePending(), makePending(), makePending(2)];
    const finishSlow = agreements.start("tunnel");
    vi.advanceTimersByTime(1000);
    agreements.start("tunnel")(ended);
    vi.advanceTimersByTime(1000);
    agreements.start("tunnel")(newest);
    finishSlow(slow);
    expect([slow, ended].map(({ keys }) => keys.presharedKey)).toEqual([zeros, zeros]);
    expect(agreements.take("tunnel", 2)).toBe(newest);
  });

  it("can be taken once, and then belongs to the caller", () => {
    const agreements = createAgreements();
    const pending = makePending();
    agreements.start("tunnel")(pending);
    expect(() => agreements.take("tunnel", 2)).toThrow();
    expect(agreements.take("tunnel", 1)).toBe(pending);
    expect(() => agreements.take("tunnel", 1)).toThrow();
    agreements.close();
    expect(pending.keys.presharedKey).toEqual(filled(1));
  });

  it("is overwritten when the server stops", () => {
    const agreements = createAgreements();
    const pending = makePending();
    agreements.start("tunnel")(pending);
    agreements.close();
    expect(Object.values(pending.keys)).toEqual([zeros, zeros, zeros]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a key for the gateway's agent", () => {
  const makeKey = (epoch = 1) => {
    return { tunnelId: "tunnel", wireguardKey: filled(8), epoch, presharedKey: filled(1) };
  };
  const connect = () => {
    const link = createGatewayLink();
    return { link, session: link.connect({ wireguardKey: gatewayKey, endpoint: "vpn.example.com:51820" }) };
  };
  const never = new AbortController().signal;

  it("waits ten seconds for the report", async () => {
    const { link, session } = connect();
    const silent = refusal(link.deliver(makeKey(), gatewayKey, never));
    session.takeKeys();
    await vi.advanceTimersByTimeAsync(reportTimeoutMs);
    expect(await silent).toEqual({ code: "Unavailable", reason: "GATEWAY_SILENT" });
    expect(link.report({ tunnelId: "tunnel", epoch: 1, applied: true })).toBe(false);
  });

  it("is sent as a copy, so that it never becomes an empty key on its way", async () => {
    const { link, session } = connect();
    const failed = refusal(link.deliver(makeKey(), gatewayKey, never));
    const [sent] = session.takeKeys();
    session.close();
    expect((await failed).reason).toBe("GATEWAY_DISCONNECTED");
    expect(sent?.presharedKey).toEqual(filled(1));
  });

  it("is sent once, and only to an agent with the right WireGuard key", async () => {
    const { link, session } = connect();
    expect((await refusal(link.deliver(makeKey(), filled(7), never))).reason).toBe("GATEWAY_DISCONNECTED");
    const delivered = link.deliver(makeKey(), gatewayKey, never);
    expect(session.takeKeys()).toHaveLength(1);
    expect(session.takeKeys()).toEqual([]);
    expect(link.report({ tunnelId: "tunnel", epoch: 1, applied: true })).toBe(true);
    await delivered;
  });

  it("is sent after the change of its peer, even if both come while the stream reads the store", async () => {
    const { link, session } = connect();
    session.takeChanged();
    link.peerChanged("tunnel");
    const delivered = link.deliver(makeKey(), gatewayKey, never);
    expect(session.takeKeys()).toEqual([]);
    expect(session.takeChanged()).toEqual(["tunnel"]);
    expect(session.takeKeys()).toHaveLength(1);
    link.report({ tunnelId: "tunnel", epoch: 1, applied: true });
    await delivered;
  });

  it("is not reported before it is sent", async () => {
    const { link, session } = connect();
    const delivered = link.deliver(makeKey(), gatewayKey, never);
    expect(link.report({ tunnelId: "tunnel", epoch: 1, applied: true })).toBe(false);
    session.takeKeys();
    expect(link.report({ tunnelId: "tunnel", epoch: 1, applied: true })).toBe(true);
    await delivered;
  });

  it("never follows one with a later epoch", async () => {
    const { link, session } = connect();
    const newer = link.deliver(makeKey(2), gatewayKey, never);
    expect((await refusal(link.deliver(makeKey(1), gatewayKey, never))).reason).toBe("EPOCH_USED");
    expect(session.takeKeys().map(({ epoch }) => epoch)).toEqual([2]);
    link.report({ tunnelId: "tunnel", epoch: 2, applied: true });
    await newer;
  });

  it("wakes the stream, even if it arrives before the stream waits", async () => {
    const { link, session } = connect();
    const delivered = link.deliver(makeKey(), gatewayKey, never);
    await session.wait(1000, never);
    expect(session.takeKeys()).toHaveLength(1);
    link.report({ tunnelId: "tunnel", epoch: 1, applied: true });
    await delivered;
  });
});
