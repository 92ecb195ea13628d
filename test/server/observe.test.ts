import { describe, expect, it } from "vitest";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { explainFailure } from "../../src/services/explain-failure.ts";
import { failureOf } from "../support/refusal.ts";
import { connectProbe, type ProbeBehaviour, protocols, serveProbe } from "./probe.ts";
import { collectLines } from "./serve.ts";

/** Serves with a log that the test reads. */
async function serveLogging(behaviour: ProbeBehaviour, level: string) {
  const { lines, logger } = collectLines(level);
  return { lines, ...(await serveProbe(behaviour, {}, { logger })) };
}

describe.each(protocols)("over %s", (protocol) => {
  it("a handler sees the call's address, headers and deadline", async () => {
    let seen: unknown[] = [];
    const { url } = await serveProbe({
      ask(_request, { url: target, requestHeader, timeoutMs, signal }) {
        const leftMs = timeoutMs() ?? 0;
        seen = [
          new URL(target).pathname,
          requestHeader.get("traceparent"),
          leftMs > 0 && leftMs <= 5000,
          signal.aborted,
        ];
        return {};
      },
    });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await connectProbe(protocol, url).ask({}, { headers: { traceparent }, timeoutMs: 5000 });
    expect(seen).toEqual(["/probing.Probe/Ask", traceparent, true, false]);
  });

  it("a fault is logged with the request ID that its caller gets, and reveals nothing else to the caller", async () => {
    const { url, lines } = await serveLogging(
      {
        ask() {
          throw new Error("the disk is on fire");
        },
      },
      "error",
    );
    const error = await failureOf(
      connectProbe(protocol, url).ask({}, { headers: { "x-request-id": "mine-1" } }),
    );
    expect(error.rawMessage).toBe("internal error");
    expect(error.metadata.get("x-request-id")).toBe("mine-1");
    expect(lines).toEqual([
      expect.objectContaining({
        method: "probing.Probe/Ask",
        requestId: "mine-1",
        reason: "INTERNAL",
        err: expect.objectContaining({ message: "the disk is on fire" }),
      }),
    ]);
  });

  it("a call that cannot reach the store is logged with the cause in words, and without a stack", async () => {
    const cause = new AggregateError([
      Object.assign(new Error("connect ECONNREFUSED"), {
        ...{ code: "ECONNREFUSED", syscall: "connect", address: "127.0.0.1", port: 5432 },
      }),
    ]);
    const { url, lines } = await serveLogging(
      {
        ask() {
          throw explainFailure(new StoreFailureError("UNAVAILABLE", cause));
        },
      },
      "error",
    );
    await failureOf(connectProbe(protocol, url).ask({}));
    expect(lines).toEqual([
      expect.objectContaining({
        reason: "STORE_UNAVAILABLE",
        cause: "nothing listens on 127.0.0.1:5432",
      }),
    ]);
    expect(JSON.stringify(lines)).not.toContain("observe.test.ts");
  });
});

describe("a call that is refused or answered", () => {
  it("is logged only at debug level, with its trace", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const { url, lines } = await serveLogging({ ask: () => ({}) }, "debug");
    const answer = await fetch(`${url}/probe/ask`, { method: "POST", headers: { traceparent } });
    expect(lines).toEqual([
      expect.objectContaining({
        level: 20,
        method: "probing.Probe/Ask",
        traceId: "0af7651916cd43dd8448eb211c80319c",
        requestId: answer.headers.get("x-request-id"),
      }),
    ]);
  });
});
