import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { readTimeout } from "../../src/calls/timeout.ts";
import { refusalOf, send } from "./client.ts";
import { serveLibrary, untilAborted } from "./library.ts";
import { invalid } from "./rules.ts";

const longestTimerMs = 2 ** 31 - 1;

describe("readTimeout", () => {
  const rows: [header: string, text: string, milliseconds: number][] = [
    ["grpc-timeout", "1H", 3_600_000],
    ["grpc-timeout", "2M", 120_000],
    ["grpc-timeout", "3S", 3000],
    ["grpc-timeout", "4m", 4],
    ["grpc-timeout", "5000u", 5],
    ["grpc-timeout", "6000000n", 6],
    ["grpc-timeout", "0S", 0],
    ["grpc-timeout", "00000001S", 1000],
    ["grpc-timeout", "99999999m", 99_999_999],
    ["grpc-timeout", "99999999S", longestTimerMs],
    ["grpc-timeout", "99999999H", longestTimerMs],
    ["connect-timeout-ms", "5000", 5000],
    ["connect-timeout-ms", "0", 0],
    ["connect-timeout-ms", "9999999999", longestTimerMs],
  ];
  for (const [header, text, milliseconds] of rows) {
    it(`reads ${header}: ${text}`, () => {
      expect(readTimeout(new Headers({ [header]: text }))).toBeCloseTo(milliseconds, 6);
    });
  }

  it("returns undefined without a header", () => {
    expect(readTimeout(new Headers())).toBeUndefined();
  });
});

describe("an invalid timeout is refused", () => {
  const rows: [header: string, text: string][] = [
    ["grpc-timeout", ""],
    ["grpc-timeout", "5"],
    ["grpc-timeout", "S"],
    ["grpc-timeout", "5s"],
    ["grpc-timeout", "5h"],
    ["grpc-timeout", "5 S"],
    ["grpc-timeout", "-5S"],
    ["grpc-timeout", "+5S"],
    ["grpc-timeout", "1.5S"],
    ["grpc-timeout", "1e3S"],
    ["grpc-timeout", "5SS"],
    ["grpc-timeout", "5ms"],
    ["grpc-timeout", "0x5S"],
    ["grpc-timeout", "123456789S"],
    ["grpc-timeout", "5S, 6S"],
    ["connect-timeout-ms", ""],
    ["connect-timeout-ms", "a"],
    ["connect-timeout-ms", "-1"],
    ["connect-timeout-ms", "1.5"],
    ["connect-timeout-ms", "5S"],
    ["connect-timeout-ms", "12345678901"],
    ["connect-timeout-ms", "1, 2"],
  ];
  for (const [header, text] of rows) {
    it(`${header}: ${JSON.stringify(text)}`, async () => {
      let calls = 0;
      const transcoder = serveLibrary({
        getBook() {
          calls += 1;
          return {};
        },
      });
      const answer = await send(transcoder, "GET /v1/books/a", { headers: { [header]: text } });
      expect(refusalOf(answer)).toEqual(invalid("TIMEOUT_INVALID"));
      expect(calls).toBe(0);
    });
  }
});

describe("a call with a deadline", () => {
  const unbounded = serveLibrary({
    getBook: (_request, { signal }) => untilAborted(signal),
    async *watchBooks(_request, { signal }) {
      await untilAborted(signal);
      yield {};
    },
  });

  for (const headers of [
    { "grpc-timeout": "10m" },
    { "connect-timeout-ms": "10" },
    { "grpc-timeout": "0S" },
  ]) {
    it(`ends in DEADLINE_EXCEEDED: ${JSON.stringify(headers)}`, async () => {
      const answer = await send(unbounded, "GET /v1/books/a", { headers });
      expect(refusalOf(answer)).toMatchObject({ status: 504, code: "DEADLINE_EXCEEDED" });
    });
    it(`ends a stream in DEADLINE_EXCEEDED: ${JSON.stringify(headers)}`, async () => {
      const answer = await send(unbounded, "GET /v1/shelves/1/books:watch", { headers });
      expect(refusalOf(answer)).toMatchObject({ status: 504, code: "DEADLINE_EXCEEDED" });
    });
  }

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
