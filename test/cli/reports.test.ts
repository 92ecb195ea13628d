/** What the client prints besides answers: warnings, colours, and the remaining time. */
import { describe, expect, it } from "vitest";
import { readGatewayOptions } from "../../envoy/gateway-options.ts";
import { explainTakenOptions } from "../../src/cli/command-line/npm-options.ts";
import { findUnknownVariables, hasVariables } from "../../src/cli/command-line/unknown-variables.ts";
import { colorHelp, colorText, createPaint, hasColors } from "../../src/cli/output/colors.ts";
import { describeTimeLeft } from "../../src/cli/output/progress.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
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

it.each([
  [0.5, 500, ""],
  [0, 5000, ""],
  [1, 5000, ""],
  [Number.NaN, 5000, ""],
  [0.5, 10_000, ", 10 s left"],
  [0.1, 10_000, ", 1 min 30 s left"],
  [0.001, 10_000, ", 2 h 46 min left"],
])("the remaining time of work that is %d done after %d ms is '%s'", (share, elapsedMs, expected) => {
  expect(describeTimeLeft(share, elapsedMs)).toBe(expected);
});

const options = [
  { name: "port", valueName: "number" },
  { name: "data-dir", valueName: "directory" },
  { name: "database-url", valueName: "url" },
  { name: "danger-open-to-network" },
];
const explain = (args: readonly string[], env: Record<string, string>) =>
  explainTakenOptions("start", options, args, { npm_lifecycle_event: "start", ...env });

describe("an option that npm consumed", () => {
  it.each<[string, readonly string[], Record<string, string>, string]>([
    ["--port 1", ["1"], { npm_config_port: "true" }, "--port 1"],
    ["--port=1", [], { npm_config_port: "1" }, "--port 1"],
    ["--port", [], { npm_config_port: "true" }, "--port NUMBER"],
    ["a switch", [], { npm_config_danger_open_to_network: "true" }, "--danger-open-to-network"],
    ["a URL", [], { npm_config_database_url: "postgres://u:secret@h/d" }, "--database-url URL"],
  ])("is reported with the command to use instead: %s", (_, args, env, line) => {
    const text = explain(args, env);
    expect(text).toContain(`: npm start -- ${line}`);
    expect(text?.endsWith(line)).toBe(true);
  });

  it("is not reported without such a variable, if the program has the option, or outside npm", () => {
    expect(explain(["--port", "1"], {})).toBeUndefined();
    expect(explain(["--port", "1"], { npm_config_port: "2" })).toBeUndefined();
    expect(explain([], { npm_config_port: "1", npm_lifecycle_event: "test" })).toBeUndefined();
  });

  it("ends the start of a server before it creates a store", { timeout }, async () => {
    const env = { npm_lifecycle_event: "start", npm_config_port: "true" };
    expect(await runQsp(["serve", "9"], { cwd: makeTemporaryDirectory(), env })).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: npm consumed --port [^\n]+ npm start -- --port 9\n$/),
    });
  });
});

describe("npm run gateway", () => {
  it("reads its own options before --, and the servers' options after it", () => {
    const line = ["--port", "9443", "--keep-going", "--", "--data-dir", "d", "--auth=token"];
    expect(readGatewayOptions(line, {})).toEqual({
      isHelp: false,
      port: 9443,
      replicas: 1,
      keepGoing: true,
      serverArgs: ["--issuer-url", "https://localhost:9443", "--data-dir", "d", "--auth=token"],
      tlsDirectory: "d/tls",
      auth: "token",
    });
  });

  it("refuses TLS between Envoy and its servers, by flag or variable", () => {
    for (const [args, env] of [
      [["--", "--tls-cert", "a.crt", "--tls-key", "a.key"], {}],
      [["--", "--tls-cert=a.crt"], {}],
      [[], { QSP_TLS_CERT: "a.crt" }],
    ] as const)
      expect(() => readGatewayOptions(args, env)).toThrow("--tls-cert");
  });

  it("reports options that npm consumed", () => {
    const env = { npm_lifecycle_event: "gateway", npm_config_port: "9443" };
    expect(() => readGatewayOptions([], env)).toThrow("npm run gateway -- --port 9443");
  });
});
