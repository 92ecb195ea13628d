import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { readTimeout } from "../../src/calls/timeout.ts";
import { refusal } from "../support/refusal.ts";
import { refusalOf, send } from "./client.ts";
import { serveLibrary, untilAborted } from "./library.ts";
import { invalid } from "./rules.ts";

const longestTimerMs = 2 ** 31 - 1;

describe("readTimeout", () => {
  it.each([
    ["grpc-timeout", "1H", 3_600_000],
    ["grpc-timeout", "2M", 120_000],
    ["grpc-timeout", "3S", 3000],
    ["grpc-timeout", "4m", 4],
    ["grpc-timeout", "5000u", 5],
    ["grpc-timeout", "6000000n", 6],
    ["grpc-timeout", "00000000S", 0],
    ["grpc-timeout", "99999999m", 99_999_999],
    ["grpc-timeout", "99999999H", longestTimerMs],
    ["connect-timeout-ms", "5000", 5000],
    ["connect-timeout-ms", "9999999999", longestTimerMs],
  ])("reads %s: %s", (header, text, milliseconds) => {
    expect(readTimeout(new Headers({ [header]: text }))).toBeCloseTo(milliseconds, 6);
  });

  it("returns undefined without a header", () => {
    expect(readTimeout(new Headers())).toBeUndefined();
  });

  const refused: Readonly<Record<string, readonly string[]>> = {
    "grpc-timeout": [
      "",
      "5",
      "S",
      "5s",
      "5 S",
      "-5S",
      "+5S",
      "1.5S",
      "1e3S",
      "5SS",
      "5ms",
      "123456789S",
      "5S, 6S",
    ],
    "connect-timeout-ms": ["", "a", "-1", "1.5", "5S", "12345678901", "1, 2"],
  };
  for (const [header, texts] of Object.entries(refused)) {
    it.each(texts)(`refuses ${header}: %j`, async (text) => {
      const read = Promise.try(() => readTimeout(new Headers({ [header]: text })));
      expect(await refusal(read)).toMatchObject({ reason: "TIMEOUT_INVALID" });
    });
  }
});

it("a call with an invalid timeout does not reach its implementation", async () => {
  let calls = 0;
  const transcoder = serveLibrary({
    getBook() {
      calls += 1;
      return {};
    },
  });
  const answer = await send(transcoder, "GET /v1/books/a", { headers: { "grpc-timeout": "5" } });
  expect(refusalOf(answer)).toEqual(invalid("TIMEOUT_INVALID"));
  expect(calls).toBe(0);
});

describe("a call with a deadline", () => {
  const unbounded = serveLibrary({
    getBook: (_request, { signal }) => untilAborted(signal),
    async *watchBooks(_request, { signal }) {
      await untilAborted(signal);
      yield {};
    },
  });

  it.each([{ "grpc-timeout": "10m" }, { "connect-timeout-ms": "10" }, { "grpc-timeout": "0S" }])(
    "ends in DEADLINE_EXCEEDED, unary or streamed: %j",
    async (headers) => {
      for (const line of ["GET /v1/books/a", "GET /v1/shelves/1/books:watch"]) {
        const refusal = refusalOf(await send(unbounded, line, { headers }));
        expect(refusal).toMatchObject({ status: 504, code: "DEADLINE_EXCEEDED" });
      }
    },
  );

  for (const text of ["99999999S", "99999999H", "2147484S"]) {
    it(`does not end at once: grpc-timeout ${text}`, async () => {
      const contexts: HandlerContext[] = [];
      const transcoder = serveLibrary({
        async getBook(_request, context) {
          contexts.push(context);
          await new Promise((resolve) => setTimeout(resolve, 10));
          context.signal.throwIfAborted();
          return {};
        },
      });
      const answer = await send(transcoder, "GET /v1/books/a", { headers: { "grpc-timeout": text } });
      expect(answer.status).toBe(200);
      expect(contexts[0]?.timeoutMs()).toBeGreaterThan(1e9);
    });
  }
});
