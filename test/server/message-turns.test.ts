import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { MessageTurns } from "../../src/server/message-turns.ts";

const large = 4_000_000;

it("passes small messages at once", () => {
  expect(new MessageTurns().take("ada", 1000)).toBeUndefined();
});

it("passes one large message per event-loop turn", async () => {
  const turns = new MessageTurns();
  let passed = 0;
  for (let i = 0; i < 10; i += 1) void turns.take("ada", large)?.then(() => (passed += 1));
  for (let turn = 1; turn <= 10; turn += 1) {
    await setImmediate();
    expect(passed).toBe(turn);
  }
});

it("alternates between clients", async () => {
  const turns = new MessageTurns();
  const order: string[] = [];
  const take = (client: string) => turns.take(client, large)?.then(() => order.push(client));
  for (let i = 0; i < 50; i += 1) void take("attacker");
  await take("ada");
  expect(order.length).toBeLessThanOrEqual(3);
});
