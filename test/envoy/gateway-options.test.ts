import { describe, expect, it } from "vitest";
import { readGatewayOptions } from "../../envoy/gateway-options.ts";

const argsOfServers = (args: readonly string[], env: NodeJS.ProcessEnv = {}): readonly string[] =>
  readGatewayOptions(args, env).serverArgs;

describe("the gateway", () => {
  it("gives all its servers one issuer URL, the address that clients use", () => {
    expect(argsOfServers(["--port", "9443", "--", "--auth", "token"])).toEqual([
      ...["--issuer-url", "https://localhost:9443"],
      ...["--auth", "token"],
    ]);
  });

  it("keeps an explicit issuer URL", () => {
    const args = ["--issuer-url=https://qsp.example.com"];
    expect(argsOfServers(["--", ...args])).toEqual(args);
    expect(argsOfServers([], { QSP_ISSUER_URL: "https://qsp.example.com" })).toEqual([]);
  });
});
