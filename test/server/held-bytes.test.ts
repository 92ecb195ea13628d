/** How the bytes of unfinished requests and unread responses are counted. */
import { setImmediate } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ByteBudget } from "../../src/server/byte-budget.ts";
import { Clients } from "../../src/server/clients.ts";
import { splitEnvelopes } from "../../src/server/protocols/envelopes.ts";
import { createUnreadResponses } from "../../src/server/unread-responses.ts";
import { refusal } from "../support/refusal.ts";
import { envelope } from "./raw.ts";

const limited = { code: "ResourceExhausted", reason: "BUFFER_LIMITED" };
const reasonOf = (run: () => unknown) => refusal((async () => run())());

const createBudget = (limits = { maxBufferedBytes: 1e9, maxBufferedBytesPerClient: 1e9 }) => {
  const clients = new Clients();
  const budget = new ByteBudget(limits, clients);
  return { budget, clients, open: (client: string) => budget.open(clients.claim(client), client) };
};

describe("the byte budget", () => {
  const create = () => createBudget({ maxBufferedBytes: 10_000, maxBufferedBytesPerClient: 5000 });

  it("refuses what exceeds one client's share, without affecting other clients", async () => {
    const { open } = create();
    open("ada").charge(4000);
    expect(await reasonOf(() => open("ada").charge(2000))).toEqual(limited);
    open("bob").charge(2000);
  });

  it("refuses what exceeds the total for all clients", async () => {
    const { open } = create();
    for (const client of ["ada", "bob"]) open(client).charge(4700);
    expect(await reasonOf(() => open("eve").charge(1000))).toEqual(limited);
  });

  it("counts more than the bytes of a piece, so that many tiny pieces are not free", async () => {
    const meter = create().open("ada");
    const drip = () => {
      for (let i = 0; i < 100; i += 1) meter.charge(1);
    };
    expect(await reasonOf(drip)).toEqual(limited);
  });

  it("is fully available again when claims are closed, however often", () => {
    const { budget, clients } = create();
    const claim = clients.claim("ada");
    const meter = budget.open(claim, "ada");
    meter.charge(4000);
    claim.close();
    claim.close();
    meter.charge(4000);
    meter.refund(100);
    expect(budget.heldBytes).toBe(0);
  });
});

describe("the turns of large messages", () => {
  const large = 4_000_000;

  it("pass small messages at once", () => {
    const { open } = createBudget();
    for (let i = 0; i < 10; i += 1) expect(open("ada").takeTurn(1000)).toBeUndefined();
  });

  it("pass one large message per event-loop turn", async () => {
    const { open } = createBudget();
    let passed = 0;
    for (let i = 0; i < 10; i += 1) {
      const turn = open("ada").takeTurn(large);
      if (turn === undefined) passed += 1;
      else void turn.then(() => (passed += 1));
    }
    for (let turn = 1; turn <= 10; turn += 1) {
      expect(passed).toBe(turn);
      await setImmediate();
    }
  });

  it("alternate between clients", async () => {
    const { open } = createBudget();
    let passed = 0;
    for (let i = 0; i < 50; i += 1)
      void open("attacker")
        .takeTurn(large)
        ?.then(() => (passed += 1));
    await open("ada").takeTurn(large);
    expect(passed).toBeLessThanOrEqual(3);
  });
});

describe("the meter of a stream", () => {
  /**
   * Passes a stream through in pieces of one size.
   *
   * @returns the maximum number of bytes held, and the number at the end
   */
  async function measure(stream: Buffer, pieceBytes: number, maxBytes = 1000) {
    const { budget, open } = createBudget();
    const pieces = async function* () {
      for (let at = 0; at < stream.length; at += pieceBytes) yield stream.subarray(at, at + pieceBytes);
    };
    let most = 0;
    const passed: Uint8Array[] = [];
    const meter = open("ada");
    const body = { chunks: pieces(), headers: new Headers(), signal: new AbortController().signal, meter };
    const reading = (async () => {
      for await (const message of splitEnvelopes(body, maxBytes)) {
        passed.push(message);
        most = Math.max(most, budget.heldBytes);
      }
    })();
    const failure = await reading.then(
      () => undefined,
      () => refusal(reading),
    );
    return { most, last: budget.heldBytes, failure, passed: Buffer.concat(passed) };
  }
  const messages = Buffer.concat(Array.from({ length: 200 }, () => envelope(Buffer.alloc(300))));

  it.each([1, 4, 5, 7, 305, 306, 1000, 100_000])("holds at most a message, in pieces of %i", async (size) => {
    const { most, last, passed } = await measure(messages, size);
    expect(passed).toEqual(messages);
    // 305 bytes and the cost of their pieces.
    expect(most).toBeLessThanOrEqual(305 + 200 * Math.ceil(305 / Math.min(size, 305)) + 200);
    expect(last).toBe(0);
  });

  it.each([304, 2])("keeps counting a message that ends after %i bytes", async (bytes) => {
    const unfinished = messages.subarray(0, messages.length - 305 + bytes);
    const { last, failure } = await measure(unfinished, 50);
    expect(last).toBeGreaterThanOrEqual(bytes);
    expect(failure).toMatchObject({ reason: "BODY_INCOMPLETE" });
  });

  it.each([5, 100_000])("refuses a prefix that announces too much, in pieces of %i", async (size) => {
    const failure = { code: "ResourceExhausted", reason: "BODY_TOO_LARGE" };
    // The second never arrives: 4 GiB, the largest number.
    for (const large of [envelope(Buffer.alloc(1001)), Buffer.of(0, 255, 255, 255, 255)]) {
      const stream = Buffer.concat([messages, large]);
      expect(await measure(stream, size)).toMatchObject({ failure, passed: messages });
    }
  });
});

it("unread responses are dropped once they make no progress within their time limit", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  let nowMs = 0;
  const dropped: string[] = [];
  const { clients } = createBudget();
  const now = () => nowMs;
  const unread = createUnreadResponses(5000, () => {}, clients, now);
  const pending = { stalled: 100, steady: 100, slow: 100_000, read: 0 };
  for (const name of ["stalled", "steady", "slow", "read"] as const)
    unread.watch({
      client: () => "ada",
      pendingBytes: () => pending[name],
      writtenBytes: () => (name === "steady" ? nowMs : 0),
      drop: () => void dropped.push(name),
    });
  for (let second = 1; second <= 8; second += 1) {
    nowMs = second * 1000;
    pending.slow -= 100;
    vi.advanceTimersByTime(1000);
  }
  expect(dropped).toEqual(["stalled"]);
  expect(clients.claim("ada").sum("unread")).toBe(100 + pending.slow);
  expect(clients.claim("bob").sum("unread")).toBe(0);
});
