/** Who is charged for the work of a call, turns of lists, and streams that end with their call. */
import { createContextValues, type Interceptor } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { callerKey, clientKey, type Role } from "../../src/calls/call-values.ts";
import { systemCaller } from "../../src/crypto/lane.ts";
import { findNetwork, listNetworks } from "../../src/http/networks.ts";
import { callerInterceptor, chargeTo, currentCall } from "../../src/server/interceptors/caller.ts";
import { listTurnInterceptor } from "../../src/server/interceptors/list-turns.ts";
import { endOnAbort, mapStream, untilAborted } from "../../src/server/interceptors/streams.ts";
import { ada } from "./probe.ts";

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

const run = (next: (req: unknown) => Promise<unknown>, req: unknown) =>
  // The interceptor reads nothing else from a request.
  callerInterceptor(next as Next)(req as Parameters<ReturnType<typeof callerInterceptor>>[0]);

/** Makes a call. Returns who it is charged to before and after its caller is known. */
async function call(address: string, { subject, role = "user" }: { subject?: string; role?: Role } = {}) {
  const req = requestFrom(address);
  const next = async (): Promise<unknown> => {
    const before = await findCaller();
    if (subject !== undefined) req.contextValues.set(callerKey, { ...ada, subject, role });
    return { stream: false, message: [before, await findCaller()] };
  };
  return (await run(next, req)).message;
}

describe("a call is charged to", () => {
  it.each<[what: string, address: string, caller: Parameters<typeof call>[1], expected: string[]]>([
    ["its network, and then its user", "192.0.2.1", { subject: "ada" }, ["network 192.0.2.1", "user ada"]],
    [
      "the /48 of an IPv6 address, which one customer may have",
      "2001:db8:1:2::3",
      {},
      ["network 2001:db8:1::/48", "network 2001:db8:1::/48"],
    ],
    [
      "all devices in a network if the caller is a device, because a user can have any number of them",
      "192.0.2.1",
      { subject: "device-1", role: "device" },
      ["network 192.0.2.1", "devices of 192.0.2.1"],
    ],
  ])("%s", async (_what, address, caller, expected) => {
    expect(await call(address, caller)).toEqual(expected);
  });

  it("the same caller in every message of its stream, whoever reads it", async () => {
    async function* produce(): AsyncGenerator<string | undefined> {
      yield await findCaller();
      yield await findCaller();
    }
    const next = async (): Promise<unknown> => ({ stream: true, message: produce() });
    const res = await run(next, { ...requestFrom("192.0.2.1"), stream: true });
    const seen = await chargeTo("the reader", () => Array.fromAsync(res.message as AsyncIterable<unknown>));
    expect(seen).toEqual(["network 192.0.2.1", "network 192.0.2.1"]);
  });

  it("its own caller, however many calls run at the same time", async () => {
    const names = Array.from({ length: 100 }, (_, i) => `user ${i}`);
    const answers = await Promise.all(names.map((subject) => call("192.0.2.1", { subject })));
    expect(answers).toEqual(names.map((name) => ["network 192.0.2.1", `user ${name}`]));
  });

  it("the server itself outside any call", () => {
    expect(currentCall.callerOf()).toBe(systemCaller);
    expect(currentCall.signalOf()).toBeUndefined();
    expect(chargeTo("tokens", currentCall.callerOf)).toBe("tokens");
  });
});

it.each([
  ["192.0.2.1", ["192.0.2.1"]],
  ["unknown", ["unknown"]],
  ["2001:db8:1:5678::1", ["2001:db8:1:5678::/64", "2001:db8:1:5600::/56", "2001:db8:1::/48"]],
  ["2001:DB8::1", ["2001:db8:0:0::/64", "2001:db8:0:0::/56", "2001:db8:0::/48"]],
  ["::1", ["0:0:0:0::/64", "0:0:0:0::/56", "0:0:0::/48"]],
])("the networks of %s", (address, networks) => {
  expect(listNetworks(address)).toEqual(networks);
  expect(findNetwork(address)).toBe(networks[0]);
});

type ListNext = Parameters<Interceptor>[0];
const { getKey, listKeys } = KmsService.method;

/** A server whose calls end when the test says so. Returns the calls that have begun. */
function serve() {
  const begun: string[] = [];
  const held = new Map<string, () => void>();
  const next = (async ({ header }: Parameters<ListNext>[0]) => {
    const name = header.get("name") ?? "";
    begun.push(name);
    await new Promise<void>((resolve) => held.set(name, resolve));
  }) as unknown as ListNext;
  const run = listTurnInterceptor()(next);
  const call = (name: string, client: string, method: typeof listKeys | typeof getKey = listKeys) =>
    run({
      stream: false,
      method,
      header: new Headers({ name }),
      signal: new AbortController().signal,
      contextValues: createContextValues().set(clientKey, client),
    } as unknown as Parameters<typeof run>[0]);
  return { begun, call, end: (name: string) => held.get(name)?.() };
}

it("run one at a time for a client, beside its other calls and other clients' lists", async () => {
  const { begun, call, end } = serve();
  const first = call("first", "10.0.0.1");
  const second = call("second", "10.0.0.1");
  void call("key", "10.0.0.1", getKey);
  void call("other", "10.0.0.2");
  await expect.poll(() => begun.toSorted()).toEqual(["first", "key", "other"]);
  end("first");
  await first;
  await expect.poll(() => begun).toContain("second");
  end("second");
  await second;
});

async function* count(): AsyncGenerator<number> {
  yield 1;
  yield 2;
}

describe("a mapped stream", () => {
  it.each([0, 1, 3])("ends once when its call is aborted after %i reads", async (reads) => {
    const ends: unknown[] = [];
    const abort = new AbortController();
    const end = (thrown?: unknown): void => void ends.push(thrown);
    const messages = endOnAbort(mapStream(count(), { end }), abort.signal)[Symbol.asyncIterator]();
    for (let i = 0; i < reads; i += 1) await messages.next();
    abort.abort();
    expect(await messages.next()).toEqual({ done: true, value: undefined });
    expect(ends).toEqual([undefined]);
  });

  it("ends its sources if nobody reads it", async () => {
    const ends: string[] = [];
    const abort = new AbortController();
    const inner = mapStream(count(), { end: () => void ends.push("inner") });
    const outer = mapStream(untilAborted(inner, abort.signal), { end: () => void ends.push("outer") });
    endOnAbort(outer, abort.signal);
    abort.abort();
    expect(ends).toEqual(["outer", "inner"]);
  });

  it("ends once with its source's error", async () => {
    const ends: unknown[] = [];
    const failure = new Error("a test");
    const messages = mapStream(
      (async function* () {
        yield* count();
        throw failure;
      })(),
      { end: (thrown) => void ends.push(thrown) },
    );
    await expect(Array.fromAsync(messages)).rejects.toThrow(failure);
    await messages.return(undefined);
    expect(ends).toEqual([failure]);
  });
});
