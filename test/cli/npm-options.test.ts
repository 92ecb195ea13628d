/** Options that npm consumes itself, and the command line of npm run gateway. */
import { describe, expect, it } from "vitest";
import { readGatewayOptions } from "../../envoy/gateway-options.ts";
import { explainTakenOptions } from "../../src/cli/command-line/npm-options.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { runQsp, timeout } from "./qsp.ts";

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
