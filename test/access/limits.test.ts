/** Limits: concurrent calls and streams, calls per second per client, and what identifies a client. */
import type { DescMethod } from "@bufbuild/protobuf";
import { type Client, createClient, createContextValues, createServiceImplSpec } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { clientKey, readClientAddress } from "../../src/calls/call-values.ts";
import { createAdmission, Ticket } from "../../src/server/admission.ts";
import { createReadClient } from "../../src/server/client-address.ts";
import { Clients } from "../../src/server/clients.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { Probe } from "../gen/probing/probe_pb.ts";
import { connectProbe, type ProbeBehaviour, serveProbe } from "../server/probe.ts";
import { serve } from "../server/serve.ts";
import {
  describeRefusal,
  failureOf,
  outcomeOf,
  outcomesOf,
  type Refusal,
  refusal,
} from "../support/refusal.ts";
import { streamOf } from "../support/streams.ts";
import { startAccessServer, timeout } from "./access-server.ts";

const busy: Refusal = { code: "ResourceExhausted", reason: "SERVER_BUSY" };

const noLimits = {
  maxCalls: 1000,
  maxStreams: 1000,
  maxCallsPerUser: 0,
  maxStreamsPerUser: 0,
  maxBufferedBytes: 1024,
  maxBufferedBytesPerClient: 1024,
};

type ProbeClient = Client<typeof Probe>;

describe("calls in flight", { timeout }, () => {
  it("are rejected beyond the limit, with the time to retry, and answered up to it", async () => {
    const { url, occupy, release } = await startGated({ maxCalls: 2 });
    const running = await occupy(2);
    const error = await failureOf(connectProbe("gRPC", url).ask({}));
    expect(describeRefusal(error)).toEqual(busy);
    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n, nanos: 0 } }]);
    expect(error.metadata.get("retry-after")).toBe("1");
    release();
    expect(await outcomesOf(running)).toEqual({ answered: 2, refusals: [] });
  });

  it.each<[string, (gate: Gate, leave: AbortController) => void]>([
    ["their handlers answer", ({ release }) => release()],
    ["their handlers fail", ({ fail }) => fail()],
    [
      "their callers have left and their handlers end",
      ({ release }, leave) => {
        leave.abort();
        release();
      },
    ],
  ])("release their slots when %s", async (_what, end) => {
    const gate = await startGated({ maxCalls: 1 });
    const leave = new AbortController();
    const running = await gate.occupy(1, { signal: leave.signal });
    end(gate, leave);
    await Promise.allSettled(running);
    await expect.poll(() => outcomeOf(connectProbe("gRPC", gate.url).look({}))).toBe("answer");
  });

  it("release their slots when they are rejected as invalid", async () => {
    const { url } = await startGated({ maxCalls: 1 });
    const headers = { "content-type": "application/json" };
    const invalid = { method: "POST", headers, body: "no JSON" };
    for (let i = 0; i < 3; i += 1) expect((await fetch(`${url}/probe/ask`, invalid)).status).toBe(400);
  });
});

describe("open streams", { timeout }, () => {
  it("include client streams, which release their slots when they are answered, and bidirectional streams", async () => {
    const { url } = await startGated({ maxStreams: 1 });
    const client = connectProbe("gRPC", url);
    for (const text of ["one", "two"])
      expect(await client.collect(streamOf({ text }))).toMatchObject({ text });
    await holdStream(url);
    expect(await refusal(client.collect(streamOf({})))).toEqual(busy);
    expect(await refusal(readFirst(client.chat(streamOf({}))))).toEqual(busy);
  });

  it.each<[string, (open: OpenStream) => void]>([
    ["its handler ends it", ({ release }) => release()],
    ["its handler fails", ({ fail }) => fail()],
    ["its caller cancels it", ({ caller }) => caller.abort()],
    ["its connection breaks", ({ connection }) => connection.abort()],
  ])("release their slots when they end: %s", async (_what, end) => {
    const { url, release, fail } = await startGated({ maxStreams: 1 });
    const open = await holdStream(url);
    const client = connectProbe("gRPC", url);
    expect(await openStream(client)).toBe("SERVER_BUSY");
    end({ ...open, release, fail });
    await expect.poll(() => openStream(client)).toBe("answer");
  });

  it("release their slots when callers leave answers unread", async () => {
    const { url, isStalled } = await startGated({ maxStreams: 1 });
    const { connection } = await holdStream(url, "more than anybody reads");
    await expect.poll(isStalled).toBe(true);
    connection.abort();
    await expect.poll(() => openStream(connectProbe("gRPC", url))).toBe("answer");
  });

  it("over REST release their slots when their callers leave", async () => {
    const { url } = await startGated({ maxStreams: 1 });
    const leave = new AbortController();
    const answer = await fetch(`${url}/probe/watch`, { signal: leave.signal });
    expect(answer.status).toBe(200);
    leave.abort();
    await expect.poll(() => openStream(connectProbe("gRPC", url))).toBe("answer");
  });
});

it("calls and streams have separate limits, and health checks have none", { timeout }, async () => {
  const { url, occupy } = await startGated({ maxCalls: 1, maxStreams: 2 });
  await holdStream(url);
  await occupy(1);
  await holdStream(url);
  const health = createClient(Health, createGrpcTransport({ baseUrl: url, idleConnectionTimeoutMs: 100 }));
  expect(await health.check({})).toMatchObject({ status: Status.SERVING });
  expect(await readFirst(health.watch({}))).toMatchObject({ status: Status.SERVING });
  for (const path of ["/livez", "/readyz", "/metrics"]) expect((await fetch(url + path)).status).toBe(200);
  expect(await openStream(connectProbe("gRPC", url))).toBe("SERVER_BUSY");
});

const answers = (count: number) => Array<string>(count).fill("answer");
const refusals = (count: number) => Array<string>(count).fill("RATE_LIMITED");

describe("calls per second", { timeout }, () => {
  const here = "192.0.2.1";

  it("are answered up to twice the rate at once, rejected beyond, and answered again at the rate", async () => {
    const { callFrom, setTime } = startRate(2);
    const call = () => callFrom(here);
    expect(await callTimes(6, call)).toEqual([...answers(4), ...refusals(2)]);
    setTime(499);
    expect(await outcomeOf(call())).toBe("RATE_LIMITED");
    setTime(500);
    expect(await callTimes(2, call)).toEqual(["answer", "RATE_LIMITED"]);
    setTime(1500);
    expect(await callTimes(3, call)).toEqual(["answer", "answer", "RATE_LIMITED"]);
    // Even a long time without calls allows no more than twice the rate.
    setTime(3_600_000);
    expect(await callTimes(5, call)).toEqual([...answers(4), ...refusals(1)]);
  });

  it("report exactly when the next call will be answered", async () => {
    const { callFrom, setTime } = startRate(2);
    await callTimes(4, () => callFrom(here));
    setTime(100);
    const error = await failureOf(callFrom(here));
    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 0n, nanos: 4e8 } }]);
    expect(error.metadata.get("retry-after")).toBe("1");
  });

  it("are not charged for rejected calls", async () => {
    const { callFrom, setTime } = startRate(2);
    await callTimes(50, () => callFrom(here));
    setTime(500);
    expect(await outcomeOf(callFrom(here))).toBe("answer");
  });

  it("are unlimited if the limit is 0, and for health checks", async () => {
    expect(await callTimes(100, () => startRate(0).callFrom(here))).toEqual(answers(100));
    const { checkHealthFrom } = startRate(1);
    expect(await callTimes(100, () => checkHealthFrom(here))).toEqual(answers(100));
  });

  it("are counted separately for each address of IPv4, and for each /64 of IPv6", async () => {
    const { callFrom } = startRate(1);
    for (const address of [here, "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1"])
      expect(await callTimes(3, () => callFrom(address))).toEqual([...answers(2), ...refusals(1)]);
    expect(await outcomeOf(callFrom("2001:db8:0:0:ffff::"))).toBe("RATE_LIMITED");
  });

  it("are counted for each user across all addresses, even at the same address", async () => {
    const { callAs } = startRate(1);
    const outcomes = [];
    for (const address of [here, "192.0.2.2", "192.0.2.3"])
      outcomes.push(await outcomeOf(callAs("ada", address)));
    expect(outcomes).toEqual([...answers(2), ...refusals(1)]);
    expect(await outcomeOf(callAs("bob", "192.0.2.3"))).toBe("answer");
  });
});

it("a client that guesses tokens reaches its rate limit before they are checked", { timeout }, async () => {
  const args = ["--max-calls-per-second", "1", "--trusted-proxies", "127.0.0.1"];
  const server = await startAccessServer({ atEnd: onTestFinished, args });
  const { tokens } = server.connect("Bearer guess", { "x-forwarded-for": "192.0.2.1" });
  const calls = Array.from({ length: 20 }, () => outcomeOf(tokens.getSecureData({})));
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["TOKEN_MALFORMED", "RATE_LIMITED"]));
});

describe("the client address of a call", { timeout }, () => {
  const proxies = ["10.0.0.1", "10.1.0.0/16", "2001:db8:5::/48"];
  const reported = "203.0.113.7";

  it.each<[string, string | undefined, string | string[] | undefined, string, string[]?]>([
    ["is the peer's address without a proxy", "192.0.2.1", undefined, "192.0.2.1"],
    ["is the peer's address if the proxy is untrusted", "192.0.2.1", reported, "192.0.2.1"],
    ["is the peer's address if no proxy is trusted", "10.0.0.1", reported, "10.0.0.1", []],
    ["is what a trusted proxy reports", "10.0.0.1", reported, reported],
    ["is what a proxy in a trusted network reports", "10.1.2.3", reported, reported],
    ["is the peer's address just outside a trusted network", "10.2.0.0", reported, "10.2.0.0"],
    ["is the last untrusted address, not what it reports", "10.0.0.1", `6.6.6.6, ${reported}`, reported],
    ["is not a trusted address claimed by a caller", "10.0.0.1", `10.0.0.1, ${reported}`, reported],
    ["is found through several proxies", "10.0.0.1", `6.6.6.6, ${reported}, 10.1.0.2`, reported],
    ["is found in several headers as in one", "10.0.0.1", [`6.6.6.6, ${reported}`, "10.1.0.2"], reported],
    ["is the first proxy's address if all are trusted", "10.0.0.1", "10.1.0.3, 10.1.0.2", "10.1.0.3"],
    ["is the proxy's address if it reports none", "10.0.0.1", "", "10.0.0.1"],
    ["is the proxy's address if it reports unknown", "10.0.0.1", "6.6.6.6, unknown", "10.0.0.1"],
    ["is the address of the proxy that reports none", "10.0.0.1", "6.6.6.6, x, 10.1.0.2", "10.1.0.2"],
    ["is parsed with and without spaces", "10.0.0.1", `6.6.6.6,  ${reported} ,10.1.0.2`, reported],
    ["may be an IPv6 address", "2001:db8:5::1", "2001:db8:6::7", "2001:db8:6::7"],
    ["is the IPv4 address that a socket reports as IPv6", "::ffff:192.0.2.1", undefined, "192.0.2.1"],
    ["is found through a proxy that a socket reports as IPv6", "::ffff:10.0.0.1", reported, reported],
    ["is found through a hop reported as IPv6", "10.0.0.1", `${reported}, ::ffff:10.1.0.2`, reported],
    ["is unknown without a peer", undefined, reported, "unknown"],
  ])("%s", (_, peer, forwardedFor, expected, trusted = proxies) => {
    const headers = { "x-forwarded-for": forwardedFor };
    expect(createReadClient(trusted)({ peer, headers })).toBe(expected);
  });

  const headers = { "x-forwarded-for": "6.6.6.6, 203.0.113.7" };

  it.each([
    ["127.0.0.0/8", "203.0.113.7"],
    ["127.0.0.2", "127.0.0.1"],
  ])("is visible to the handlers of calls, streams and REST calls: behind %s, %s", async (trusted, text) => {
    const url = await serveClientOf([trusted]);
    const probe = connectProbe("gRPC", url);
    expect(await probe.ask({}, { headers })).toMatchObject({ text });
    expect(await readFirst(probe.watch({}, { headers }))).toMatchObject({ text });
    expect(await (await fetch(`${url}/probe/look`, { headers })).json()).toMatchObject({ text });
  });
});

type Gate = Awaited<ReturnType<typeof startGated>>;

interface OpenStream extends Pick<Gate, "release" | "fail"> {
  /** Aborts the call. */
  readonly caller: AbortController;
  readonly connection: Http2SessionManager;
}

/** A server whose Ask and Watch block until released; Look, Collect and Chat answer at once. */
async function startGated(limits: Partial<ServerLimits>) {
  const gate = Promise.withResolvers<void>();
  // The promise may reject while nobody is waiting for it.
  gate.promise.catch(() => {});
  let entered = 0;
  let sentAtMs = Number.POSITIVE_INFINITY;
  const behaviour: ProbeBehaviour = {
    async ask(item) {
      entered += 1;
      await gate.promise;
      return item;
    },
    async *watch(item) {
      yield item;
      for (let i = 0; item.text !== "" && i < 1000; i += 1) {
        sentAtMs = performance.now();
        yield { data: new Uint8Array(65_536) };
      }
      // Ignores a disconnected caller: the slot belongs to the caller, not to the handler.
      await gate.promise;
    },
  };
  const { url } = await serveProbe(behaviour, limits);
  // Before the server stops, so that it need not wait for them.
  onTestFinished(() => gate.resolve());
  return {
    url,
    release: () => gate.resolve(),
    fail: () => gate.reject(new Error("the handler fails")),
    /** Whether the server is waiting for the reader of a stream that has more to send. */
    isStalled: () => performance.now() - sentAtMs > 100,
    /** Makes calls that are in their handlers when this returns. */
    async occupy(count: number, options: { signal?: AbortSignal } = {}) {
      const client = connectProbe("gRPC", url);
      const running = Array.from({ length: count }, () => client.ask({}, options));
      for (const call of running) call.catch(() => {});
      await expect.poll(() => entered).toBe(count);
      return running;
    },
  };
}

/** Opens a stream on its own connection and leaves it open. */
async function holdStream(url: string, text = ""): Promise<Omit<OpenStream, "release" | "fail">> {
  const connection = new Http2SessionManager(url);
  onTestFinished(() => connection.abort());
  const caller = new AbortController();
  const client = createClient(Probe, createGrpcTransport({ baseUrl: url, sessionManager: connection }));
  const answers = client.watch({ text }, { signal: caller.signal })[Symbol.asyncIterator]();
  expect((await answers.next()).done).toBe(false);
  return { caller, connection };
}

/**
 * Opens a stream and returns the outcome, then cancels it: the server does not notice a client that merely
 * stops reading.
 */
async function openStream(client: ProbeClient): Promise<string | undefined> {
  const leave = new AbortController();
  try {
    return await outcomeOf(readFirst(client.watch({}, { signal: leave.signal })));
  } finally {
    leave.abort();
  }
}

/** Returns the first answer of a stream, then leaves the stream. */
async function readFirst<Answer>(stream: AsyncIterable<Answer>): Promise<Answer | undefined> {
  for await (const answer of stream) return answer;
  return undefined;
}

/** Calls per second, with a manual clock. */
function startRate(perSecond: number) {
  let nowMs = 0;
  const deps = { clients: new Clients(), limits: { ...noLimits, maxCallsPerSecond: perSecond } };
  const open = createAdmission({ ...deps, nowMs: () => nowMs });
  const withUsers = createAdmission({
    ...deps,
    nowMs: () => nowMs,
    access: {
      mode: "token",
      authenticate: async (authorization) => ({
        ...{ subject: authorization ?? "", role: "user", issuedAt: new Date(0), expiresAt: new Date(0) },
      }),
    },
  });
  const call = async (
    { admit }: ReturnType<typeof createAdmission>,
    address: string,
    method: DescMethod,
    authorization: string | null,
  ) => {
    const ticket = new Ticket();
    try {
      await admit({ method, authorization, values: createContextValues().set(clientKey, address), ticket });
    } finally {
      ticket.close();
    }
  };
  return {
    callFrom: (address: string) => call(open, address, Probe.method.ask, null),
    callAs: (subject: string, address: string) =>
      call(withUsers, address, PqcService.method.signData, subject),
    checkHealthFrom: (address: string) => call(open, address, Health.method.check, null),
    setTime: (ms: number): void => {
      nowMs = ms;
    },
  };
}

async function callTimes(times: number, call: () => Promise<unknown>): Promise<(string | undefined)[]> {
  const outcomes: (string | undefined)[] = [];
  for (let i = 0; i < times; i += 1) outcomes.push(await outcomeOf(call()));
  return outcomes;
}

/** Serves calls that answer with their client address. */
async function serveClientOf(trustedProxies: readonly string[]): Promise<string> {
  const implementation: ProbeBehaviour = {
    ask: (_item, context) => ({ text: readClientAddress(context) }),
    look: (_item, context) => ({ text: readClientAddress(context) }),
    async *watch(_item, context) {
      yield { text: readClientAddress(context) };
    },
  };
  const { url } = await serve({
    services: [createServiceImplSpec<typeof Probe>(Probe, implementation as never)],
    trustedProxies,
  });
  return url;
}
