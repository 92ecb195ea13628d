import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../page/failure.ts";
import { refusalOf } from "./steps/fake-caller.ts";

describe("a step that expects a refusal", () => {
  it("is done if the server refuses for the expected reason", async () => {
    const refusal = await expectRefusal(Promise.reject(refusalOf("OWNER_MISMATCH")), "OWNER_MISMATCH");
    expect(refusal.reason).toBe("OWNER_MISMATCH");
  });

  it.each([
    ["the server is unreachable", ConnectError.from(new TypeError("Failed to fetch")), "UNREACHABLE"],
    ["a proxy answers for the server", new ConnectError("HTTP 502", Code.Unavailable), "UNAVAILABLE"],
    ["the log-in has expired", refusalOf("TOKEN_EXPIRED"), "TOKEN_EXPIRED"],
    ["the server accepts the call", undefined, "NOT_REFUSED"],
  ])("fails if %s", async (_what, outcome, reason) => {
    const call = outcome === undefined ? Promise.resolve() : Promise.reject(outcome);
    await expect(expectRefusal(call, "OWNER_MISMATCH")).rejects.toMatchObject({ reason });
  });
});
