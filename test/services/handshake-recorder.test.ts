import { describe, expect, it } from "vitest";
import { HandshakeRecorder, type RecordedHandshake } from "../../src/services/pqc/record-handshake.ts";
import { refusal } from "../support/refusal.ts";

const limited = { code: "ResourceExhausted", reason: "RATE_LIMITED" };
const hybrid = { group: "X25519MLKEM768", certificate: "ECDSA-P256" };
const classical = { group: "X25519", certificate: "ECDSA-P256" };
const third = { group: "P-384", certificate: "ML-DSA-65" };

/** A recorder with a clock that the test sets, and recordings that end when the test says so. */
function createRecorder() {
  const clock = { nowMs: 0 };
  const begun: { input: unknown; end: (error?: Error) => void }[] = [];
  const record = (input: unknown): Promise<RecordedHandshake> => {
    const { promise, resolve, reject } = Promise.withResolvers<RecordedHandshake>();
    const recorded = {
      records: [],
      keyLog: String(begun.length),
      group: "",
      cipherSuite: "",
      certificate: "",
    };
    begun.push({ input, end: (error) => (error === undefined ? resolve(recorded) : reject(error)) });
    return promise;
  };
  return { clock, begun, recorder: new HandshakeRecorder({ record, nowMs: () => clock.nowMs }) };
}

/** Lets everything run that waits for nothing else. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("HandshakeRecorder", () => {
  it("records the hybrid group with an ECDSA certificate by default", async () => {
    const { recorder, begun } = createRecorder();
    void recorder.record({ group: "", certificate: "" });
    void recorder.record(hybrid);
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid]);
  });

  it("answers equal calls of the next second with the same recording, and then makes another", async () => {
    const { recorder, begun, clock } = createRecorder();
    const first = recorder.record(hybrid);
    await settle();
    clock.nowMs = 5000;
    const whileRecording = recorder.record(hybrid);
    begun[0]?.end();
    await first;
    clock.nowMs = 5999;
    expect(await recorder.record(hybrid)).toBe(await first);
    expect(await whileRecording).toBe(await first);
    clock.nowMs = 6000;
    void recorder.record(hybrid);
    await settle();
    expect(begun).toHaveLength(2);
  });

  it("records one at a time", async () => {
    const { recorder, begun } = createRecorder();
    void recorder.record(hybrid);
    void recorder.record(classical);
    await settle();
    expect(begun).toHaveLength(1);
    begun[0]?.end();
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid, classical]);
  });

  it("refuses a third recording in a second, and says when to retry", async () => {
    const { recorder, begun, clock } = createRecorder();
    const both = [recorder.record(hybrid), recorder.record(classical)];
    await settle();
    expect(() => recorder.record(third)).toThrow(/two|2 handshakes a second/);
    begun[0]?.end();
    await settle();
    clock.nowMs = 100;
    begun[1]?.end();
    await Promise.all(both);
    clock.nowMs = 400;
    const refused = Promise.resolve().then(() => recorder.record(third));
    expect(await refusal(refused)).toEqual(limited);
    await expect(refused).rejects.toMatchObject({
      details: expect.arrayContaining([
        expect.objectContaining({ value: { retryDelay: expect.objectContaining({ nanos: 600_000_000 }) } }),
      ]),
    });
    clock.nowMs = 1000;
    void recorder.record(third);
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid, classical, third]);
  });

  it("goes on after a recording that fails", async () => {
    const { recorder, begun, clock } = createRecorder();
    const first = recorder.record(hybrid);
    const second = recorder.record(classical);
    await settle();
    begun[0]?.end(new Error("the thread ended"));
    await expect(first).rejects.toThrow("the thread ended");
    await settle();
    begun[1]?.end();
    expect((await second).keyLog).toBe("1");
    clock.nowMs = 1000;
    void recorder.record(hybrid);
    await settle();
    expect(begun).toHaveLength(3);
  });
});
