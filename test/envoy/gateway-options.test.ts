import { describe, expect, it } from "vitest";
import { readGatewayOptions } from "../../envoy/gateway-options.ts";

const argsOfServers = (args: readonly string[], env: NodeJS.ProcessEnv = {}): readonly string[] =>
  readGatewayOptions(args, env).serverArgs;

describe("the gateway", () => {
  it("gives all its servers one URL of the issuer, by which clients know it", () => {
    expect(argsOfServers(["--port", "9443", "--", "--auth", "token"])).toEqual([
      ...["--issuer-url", "https://localhost:9443"],
      ...["--auth", "token"],
    ]);
  });

  it("leaves another URL of the issuer as it is", () => {
    const args = ["--issuer-url=https://qsp.example.com"];
    expect(argsOfServers(["--", ...args])).toEqual(args);
    expect(argsOfServers([], { QSP_ISSUER_URL: "https://qsp.example.com" })).toEqual([]);
  });
});
