import { describe, expect, it } from "vitest";
import { createCrossSiteLog } from "../../src/server/cross-site-log.ts";
import { serveProbe } from "./probe.ts";
import { connectHttp2, request } from "./raw.ts";
import { collectLines } from "./serve.ts";

/** A log with a test clock. */
function openLog() {
  const { lines, logger } = collectLines("warn");
  const clock = { nowMs: 1 };
  const log = createCrossSiteLog(logger, () => clock.nowMs);
  const refuse = (origin: string | undefined, times = 1): void => {
    for (let i = 0; i < times; i += 1) log.refused({ origin, requestId: "r-1" });
  };
  return { lines, clock, refuse, logger };
}

const minuteMs = 60_000;

describe("log lines about pages of other origins", () => {
  it("name the origin, the setting that allows it, and the request", () => {
    const { lines, refuse } = openLog();
    refuse("https://elsewhere.example");
    const reason = "CROSS_SITE_REFUSED";
    const msg = expect.stringContaining("--cors-origins");
    const expected = { level: 40, reason, origin: "https://elsewhere.example", requestId: "r-1", msg };
    expect(lines).toMatchObject([expected]);
  });

  it("appear once per origin in ten minutes, and the next one counts the refusals between", () => {
    const { lines, clock, refuse } = openLog();
    refuse("https://a.example", 5);
    clock.nowMs += 10 * minuteMs - 1;
    refuse("https://a.example", 2);
    expect(lines).toHaveLength(1);
    clock.nowMs += 1;
    refuse("https://a.example");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({ more: 6 });
  });

  it("are limited to twenty in ten minutes, however many origins an attacker invents", () => {
    const { lines, clock, refuse } = openLog();
    for (let i = 0; i < 10_000; i += 1) refuse(`https://${i}.example`);
    expect(lines).toHaveLength(20);
    clock.nowMs += 10 * minuteMs;
    refuse("https://real.example");
    expect(lines.slice(20)).toMatchObject([{ origin: "https://real.example", others: 9980 }]);
    refuse("https://next.example");
    expect(lines[21]).not.toHaveProperty("others");
  });

  const useless = [undefined, "null", "file://", "https://a.example/path", "https://*.example", "https://"];
  it.each(useless)("do not advise a setting that cannot help: %s", (origin) => {
    const { lines, refuse } = openLog();
    refuse(origin);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.msg).not.toContain("--cors-origins");
  });

  it("truncate long values", () => {
    const { lines, refuse } = openLog();
    refuse(`https://${"a".repeat(8000)}.example`);
    expect(String(lines[0]?.origin).length).toBeLessThanOrEqual(100);
  });
});

// refusals.test.ts tests that each refusal is counted.
it("a server logs the request ID of a refusal, also of a preflight", async () => {
  const { logger, lines } = openLog();
  const { url } = await serveProbe({}, {}, { logger, corsOrigins: ["https://allowed.example"] });
  const session = connectHttp2(url);
  const origins = ["https://allowed.example", "https://a.example", "https://b.example", "https://b.example"];
  const ids: unknown[] = [];
  for (const origin of origins) {
    const preflight = {
      ":method": "OPTIONS",
      ":path": "/probe/ask",
      "access-control-request-method": "POST",
    };
    ids.push((await request(session, { ...preflight, origin })).headers["x-request-id"]);
  }
  const logged = lines.map(({ origin, requestId }) => [origin, requestId]);
  expect(logged).toEqual([1, 2].map((at) => [origins[at], ids[at]]));
});
