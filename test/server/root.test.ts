import { describe, expect, it } from "vitest";
import { serveProbe } from "./probe.ts";

describe("GET /", () => {
  it("lists every REST call with its RPC, as text", async () => {
    const answer = await fetch((await serveProbe()).url);
    expect(answer.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(await answer.text()).toMatch(/^POST +\/probe\/ask +probing\.Probe\.Ask$/m);
  });

  it("announces a longer keep-alive to HTTP/1.1 clients than load balancers use", async () => {
    const answer = await fetch((await serveProbe()).url);
    expect(answer.headers.get("keep-alive")).toBe("timeout=75");
  });
});
