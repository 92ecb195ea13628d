import { describe, expect, it } from "vitest";
import { Failure } from "../../page/failure.ts";
import { writeCaption } from "../../page/home/caption.ts";
import type { Finding } from "../../page/home/signature.ts";

const lost = new Failure("UNREACHABLE", "UNAVAILABLE", "The server could not be reached.");

function tellOf(server: Finding, browser: Finding, flipped: readonly number[] = []): string {
  const findings = { server, browser };
  const shown = { flipped: new Set(flipped), findings, isChecking: false };
  return writeCaption({ signed: { by: server === "not asked" ? "browser" : "server" }, ...shown });
}

describe("the caption", () => {
  it("names the sides that accept the signature", () => {
    expect(tellOf(true, true)).toMatch(/^Server and browser accept it\./);
    expect(tellOf(lost, true)).toMatch(/^Your browser accepts it\./);
    expect(tellOf(false, true)).toMatch(/^The two sides disagree\./);
    expect(tellOf("not asked", true)).toContain("because calls require a log-in");
  });

  it("names the sides that reject a flipped bit, and no side that did not answer", () => {
    expect(tellOf(false, false, [7])).toContain("in byte 7. Both sides reject the whole signature.");
    expect(tellOf(lost, false, [7])).toContain("Your browser rejects the whole signature.");
    expect(tellOf("not asked", false, [7])).toContain("Your browser rejects the whole signature.");
    expect(tellOf(true, false, [7])).toContain("The two sides disagree.");
  });
});
