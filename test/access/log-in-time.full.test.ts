import { describe, expect, it, onTestFinished } from "vitest";
import { hashPassword } from "../../src/identity/passwords.ts";
import { password } from "../support/passwords.ts";
import { refusal } from "../support/refusal.ts";
import { startAccessServer, timeout } from "./access-server.ts";

const wrong = "incorrect horse battery staple";

describe("the duration of a failed log-in", { timeout }, () => {
  it("is about the same for a wrong password and an unknown user", async () => {
    const server = await startAccessServer({ atEnd: onTestFinished, args: ["--max-failed-logins", "100"] });
    const passwordHash = await hashPassword(password);
    await server.office.users.add({ name: "ada", role: "user", passwordHash }, new Date());
    const { tokens } = server.connect();
    const names = { known: "ada", unknown: "nobody" };
    const times = { known: [] as number[], unknown: [] as number[] };
    // Alternating, so that other load on the machine affects both.
    for (let i = 0; i < 5; i += 1)
      for (const who of ["known", "unknown"] as const) {
        const startedMs = performance.now();
        await refusal(tokens.issueToken({ username: names[who], password: wrong }));
        times[who].push(performance.now() - startedMs);
      }
    // Other load slows a log-in down, but never speeds it up.
    const factor = Math.min(...times.known) / Math.min(...times.unknown);
    expect(factor).toBeGreaterThan(1 / 3);
    expect(factor).toBeLessThan(3);
  });
});
