import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { ByteBudget } from "../../src/server/byte-budget.ts";
import { Clients } from "../../src/server/clients.ts";

const large = 4_000_000;

function createTurns() {
  const clients = new Clients();
  const budget = new ByteBudget({ maxBufferedBytes: 1e9, maxBufferedBytesPerClient: 1e9 }, clients);
  return (client: string, bytes: number) => budget.open(clients.claim(client), client).takeTurn(bytes);
}

it("passes small messages at once", () => {
  const take = createTurns();
  for (let i = 0; i < 10; i += 1) expect(take("ada", 1000)).toBeUndefined();
});

it("passes one large message per event-loop turn", async () => {
  const take = createTurns();
  let passed = 0;
  for (let i = 0; i < 10; i += 1) {
    const turn = take("ada", large);
    if (turn === undefined) passed += 1;
    else void turn.then(() => (passed += 1));
  }
  for (let turn = 1; turn <= 10; turn += 1) {
    expect(passed).toBe(turn);
    await setImmediate();
  }
});

it("alternates between clients", async () => {
  const take = createTurns();
  const order: string[] = [];
  for (let i = 0; i < 50; i += 1) void take("attacker", large)?.then(() => order.push("attacker"));
  await take("ada", large);
  expect(order.length).toBeLessThanOrEqual(3);
});
