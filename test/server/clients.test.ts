import { describe, expect, it } from "vitest";
import { Clients } from "../../src/server/clients.ts";

describe("the resources of a client", () => {
  it("are the sum of its claims, and are released when these close, however often", () => {
    const clients = new Clients();
    const [first, second, other] = [clients.claim("ada"), clients.claim("ada"), clients.claim("bob")];
    first.add("bytes", 100);
    second.add("bytes", 20);
    other.add("bytes", 3);
    expect([first.sum("bytes"), second.sum("bytes"), other.sum("bytes")]).toEqual([120, 120, 3]);
    first.close();
    first.close();
    first.add("bytes", 7);
    expect([second.sum("bytes"), other.sum("bytes")]).toEqual([20, 3]);
  });

  it("stay within the limit across all claims", () => {
    const clients = new Clients();
    const [first, second] = [clients.claim("ada"), clients.claim("ada")];
    expect([first, second, first].map((claim) => claim.tryAcquire("calls", 2))).toEqual([true, true, false]);
    second.close();
    expect(first.tryAcquire("calls", 2)).toBe(true);
  });

  it("occupy no memory once the last claim is closed", () => {
    const clients = new Clients();
    const claims = ["ada", "bob", "ada"].map((name) => clients.claim(name));
    expect(clients.size).toBe(2);
    for (const claim of claims) claim.close();
    expect(clients.size).toBe(0);
    expect(clients.claim("ada").sum("calls")).toBe(0);
  });
});
