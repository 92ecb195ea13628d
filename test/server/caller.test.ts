/** Who is charged for the work of a call. */
import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { callerKey, clientKey, type Role } from "../../src/calls/call-values.ts";
import { systemCaller } from "../../src/crypto/lane.ts";
import { findNetwork, listNetworks } from "../../src/http/networks.ts";
import { callerInterceptor, chargeTo, currentCall } from "../../src/server/interceptors/caller.ts";

type Next = Parameters<typeof callerInterceptor>[0];

/** The caller as seen by code deep within a call. */
async function findCaller(): Promise<string | undefined> {
  await new Promise((resolve) => setImmediate(resolve));
  return currentCall.callerOf();
}

function requestFrom(address: string) {
  const contextValues = createContextValues().set(clientKey, address);
  return { contextValues, method: TokenService.method.hello, stream: false };
}

/** Makes a call that answers who it is charged to. */
function call(address: string, { subject, role = "user" }: { subject?: string; role?: Role } = {}) {
  const req = requestFrom(address);
  const next = async (): Promise<unknown> => {
    const before = await findCaller();
    if (subject !== undefined)
      req.contextValues.set(callerKey, { subject, role, issuedAt: new Date(0), expiresAt: new Date(0) });
    return { stream: false, message: [before, await findCaller()] };
  };
  // The interceptor reads nothing else from a request.
  return callerInterceptor(next as Next)(
    req as unknown as Parameters<ReturnType<typeof callerInterceptor>>[0],
  );
}

describe("a call is charged to", () => {
  it("its network until it is authenticated, and then to its user", async () => {
    const { message } = await call("192.0.2.1", { subject: "ada" });
    expect(message).toEqual(["network 192.0.2.1", "user ada"]);
  });

  it("the /48 of an IPv6 address, which one customer may have", async () => {
    const { message } = await call("2001:db8:1:2::3");
    expect(message).toEqual(Array(2).fill("network 2001:db8:1::/48"));
  });

  it("all devices in a network if the caller is a device, because a user can have any number of them", async () => {
    const { message } = await call("192.0.2.1", { subject: "device-1", role: "device" });
    expect(message).toEqual(["network 192.0.2.1", "devices of 192.0.2.1"]);
  });

  it("the same caller in every message of its stream, whoever reads it", async () => {
    const req = { ...requestFrom("192.0.2.1"), stream: true };
    async function* produce(): AsyncGenerator<string | undefined> {
      yield await findCaller();
      yield await findCaller();
    }
    const next = async (): Promise<unknown> => ({ stream: true, message: produce() });
    const res = await callerInterceptor(next as Next)(
      req as unknown as Parameters<ReturnType<typeof callerInterceptor>>[0],
    );
    const seen: unknown[] = [];
    await chargeTo("the reader", async () => {
      if (res.stream) for await (const message of res.message) seen.push(message);
    });
    expect(seen).toEqual(["network 192.0.2.1", "network 192.0.2.1"]);
  });

  it("its own caller, however many calls run at the same time", async () => {
    const calls = Array.from({ length: 100 }, (_, i) => call("192.0.2.1", { subject: `user ${i}` }));
    const answers = await Promise.all(calls);
    expect(answers.map(({ message }) => message)).toEqual(
      Array.from({ length: 100 }, (_, i) => ["network 192.0.2.1", `user user ${i}`]),
    );
  });

  it("the server itself outside any call", () => {
    expect(currentCall.callerOf()).toBe(systemCaller);
    expect(currentCall.signalOf()).toBeUndefined();
    expect(chargeTo("tokens", currentCall.callerOf)).toBe("tokens");
  });
});

describe("the networks of an address", () => {
  it.each([
    ["192.0.2.1", ["192.0.2.1"]],
    ["unknown", ["unknown"]],
    [
      "2001:db8:1234:5678:9abc::1",
      ["2001:db8:1234:5678::/64", "2001:db8:1234:5600::/56", "2001:db8:1234::/48"],
    ],
    ["2001:DB8::1", ["2001:db8:0:0::/64", "2001:db8:0:0::/56", "2001:db8:0::/48"]],
    ["::1", ["0:0:0:0::/64", "0:0:0:0::/56", "0:0:0::/48"]],
  ])("%s", (address, networks) => {
    expect(listNetworks(address)).toEqual(networks);
    expect(findNetwork(address)).toBe(networks[0]);
  });
});
