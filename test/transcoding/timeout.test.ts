import { describe, expect, it } from "vitest";
import { readTimeout } from "../../src/calls/timeout.ts";
import { refusal } from "../support/refusal.ts";
import { refusalOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";
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
    ["grpc-timeout", "2147484S", longestTimerMs],
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
    "grpc-timeout": ["", "5", "S", "5s", "5 S", "-5S", "1.5S", "1e3S", "5SS", "5ms", "123456789S", "5S, 6S"],
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
  const headers = { "grpc-timeout": "5" };
  const answer = await send(serveLibrary({}), "GET /v1/books/a", { headers });
  expect(refusalOf(answer)).toEqual(invalid("TIMEOUT_INVALID"));
});
