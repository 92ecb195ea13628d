/** What the client prints besides answers: warnings, colours, and the remaining time. */
import { describe, expect, it } from "vitest";
import { findUnknownVariables, hasVariables } from "../../src/cli/command-line/unknown-variables.ts";
import { colorHelp, colorText, createPaint, hasColors } from "../../src/cli/output/colors.ts";
import { describeTimeLeft } from "../../src/cli/output/progress.ts";
import { runQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

describe("an unused variable", { timeout }, () => {
  const settings = ["QSP_PORT", "QSP_DATA_DIR", "QSP_MAX_CALLS"];
  it.each([
    ["QSP_DATADIR", "QSP_DATA_DIR"],
    ["QSP_TOKN", "QSP_TOKEN"],
    ["QSP_WORKERS", "QSP_REUSE_PORT"],
  ])("%s is reported with the nearest name or replacement %s, and without its value", (name, better) => {
    expect(findUnknownVariables({ [name]: "secret" }, settings)).toEqual([
      `the variable ${name} is unknown and has no effect; did you mean ${better}?`,
    ]);
  });

  it("is not a variable of the client, a setting, tests, another tool, or a service link", () => {
    const names = [
      ...["QSP_URL", "QSP_CA", "QSP_TOKEN", "QSP_PORT", "QSP_TEST_VECTORS", "PATH", "QSPX", "QSP_ENVOY"],
      ...["QSP_SERVICE_HOST", "QSP_SERVERS_PORT_8080_TCP_ADDR", "QSP_SERVICE_PORT_GRPC", "QSP_1_PORT"],
    ];
    const env = Object.fromEntries(names.map((name) => [name, "x"]));
    expect(findUnknownVariables(env, settings)).toEqual([]);
    expect(hasVariables({ QSP_URL: "", QSP_TEST_X: "" })).toBe(false);
    expect(hasVariables(env)).toBe(true);
  });

  it("causes one warning from a command, which is JSON with --json", async () => {
    const options = { ...server.place(), env: { QSP_TOKN: "secret" } };
    const { code, stderr } = await runQsp(["kms", "list"], options);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^qsp: warning: [^\n]*QSP_TOKN[^\n]*\n$/)]);
    const json = await runQsp(["kms", "list", "--json"], options);
    expect(JSON.parse(json.stderr)).toMatchObject({ status: "warning" });
  });
});

describe("colours", () => {
  it.each([
    [true, {}, true],
    [false, {}, false],
    [true, { TERM: "dumb" }, false],
    [true, { NO_COLOR: "1" }, false],
    [true, { NO_COLOR: "" }, true],
    [false, { FORCE_COLOR: "1" }, true],
    [true, { FORCE_COLOR: "0" }, false],
    [false, { NO_COLOR: "1", FORCE_COLOR: "1" }, false],
  ])("on a terminal (%s) with %j: %s", (isTTY, env, expected) => {
    expect(hasColors({ isTTY }, env)).toBe(expected);
  });

  it("highlight what is valid and what is not, and headings, and nothing else", () => {
    const paint = createPaint({ isTTY: true }, {});
    const good = "f: the signature is valid (ML-DSA-65)";
    expect(colorText(good, paint)).toBe(`\u001b[32m${good}\u001b[39m`);
    const bad = "is valid: the signature is NOT valid";
    expect(colorText(bad, paint)).toBe(`\u001b[31m${bad}\u001b[39m`);
    expect(colorText("KEY    STATUS\nkey-1  ACTIVE", paint)).toBe(
      "\u001b[1mKEY    STATUS\u001b[22m\nkey-1  \u001b[32mACTIVE\u001b[39m",
    );
    expect(colorHelp("Options:\n  --json  Prints JSON", paint)).toBe(
      "\u001b[1mOptions:\u001b[22m\n  --json  Prints JSON",
    );
    expect(colorText("-----BEGIN PUBLIC KEY-----", paint)).toBe("-----BEGIN PUBLIC KEY-----");
  });
});

describe("the remaining time", () => {
  it.each([
    [0.5, 500, ""],
    [0, 5000, ""],
    [1, 5000, ""],
    [Number.NaN, 5000, ""],
    [0.5, 10_000, ", 10 s left"],
    [0.1, 10_000, ", 1 min 30 s left"],
    [0.001, 10_000, ", 2 h 46 min left"],
  ])("of work that is %d done after %d ms is '%s'", (share, elapsedMs, expected) => {
    expect(describeTimeLeft(share, elapsedMs)).toBe(expected);
  });
});
