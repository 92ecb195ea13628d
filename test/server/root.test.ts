import { describe, expect, it } from "vitest";
import { startProbe } from "./probe.ts";

describe("GET /", () => {
  it("lists every REST call with its RPC, as text", async () => {
    const { url, end } = await startProbe({});
    try {
      const answer = await fetch(url);
      expect(answer.headers.get("content-type")).toMatch(/^text\/plain/);
      expect(await answer.text()).toMatch(/^POST +\/probe\/ask +probing\.Probe\.Ask$/m);
    } finally {
      await end();
    }
  });

  it("tells clients of HTTP/1.1 that a connection stays open longer than a load balancer keeps it", async () => {
    const { url, end } = await startProbe({});
    try {
      expect((await fetch(url)).headers.get("keep-alive")).toBe("timeout=75");
    } finally {
      await end();
    }
  });
});
