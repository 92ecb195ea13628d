import { create } from "@bufbuild/protobuf";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { pino } from "pino";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { KeyManagementService, StatusResponseSchema } from "#gen/kubernetes/kms_pb.ts";
import { refuse } from "../../../src/errors.ts";
import { createCallMetrics } from "../../../src/server/call-metrics.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { createObserver } from "../observe.ts";
import { keyServiceUnavailable } from "../reasons.ts";

/** A service whose Status waits for the test, behind the observer. */
function makeObserved(maxCalls: number) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const registry = new Registry();
  const observer = createObserver({ logger, metrics: createCallMetrics(registry, [1]), maxCalls });
  const waiting: (() => void)[] = [];
  const transport = createRouterTransport(
    ({ service }) =>
      void service(KeyManagementService, {
        status: async () => {
          await new Promise<void>((resolve) => waiting.push(resolve));
          return create(StatusResponseSchema, { healthz: "ok" });
        },
        encrypt: () => {
          throw refuse(keyServiceUnavailable, "the key service is down");
        },
        decrypt: () => {
          throw new TypeError("a bug with a secret in its message");
        },
      }),
    { router: { interceptors: [observer] } },
  );
  return { client: createClient(KeyManagementService, transport), lines, registry, waiting };
}

describe("plugin calls", () => {
  it("above the limit are refused immediately, until others finish", async () => {
    const { client, waiting, registry } = makeObserved(2);
    const running = [client.status({}), client.status({})];
    await expect.poll(() => waiting.length).toBe(2);
    expect(await refusal(client.status({}))).toEqual({
      code: Code[Code.ResourceExhausted],
      reason: "CONCURRENCY_LIMITED",
    });
    for (const resolve of waiting) resolve();
    expect((await Promise.all(running)).map(({ healthz }) => healthz)).toEqual(["ok", "ok"]);
    const next = client.status({});
    await expect.poll(() => waiting.length).toBe(3);
    waiting[2]?.();
    await next;
    const text = await registry.metrics();
    expect(text).toContain('code="OK"} 3');
    expect(text).toContain('code="ResourceExhausted"} 1');
    expect(text).toContain('qsp_calls_running{method="v2.KeyManagementService/Status"} 0');
  });

  it("that fail because of the key service or the plugin are logged as errors", async () => {
    const { client, lines } = makeObserved(2);
    expect(await refusal(client.encrypt({ uid: "1" }))).toMatchObject({ reason: "KEY_SERVICE_UNAVAILABLE" });
    expect(await refusal(client.decrypt({ uid: "2" }))).toEqual({ code: "Internal", reason: "INTERNAL" });
    expect(lines).toMatchObject([
      { level: 50, call: "Encrypt", uid: "1", code: "Unavailable", message: "the key service is down" },
      { level: 50, call: "Decrypt", uid: "2", code: "Internal", err: { type: "TypeError" } },
    ]);
  });
});
