/** Deadlines, callers who disconnect, and what remains of a call once it has ended. */
import { once } from "node:events";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { readTimeout } from "../../src/calls/timeout.ts";
import { describeRefusal, refusal } from "../support/refusal.ts";
import { createOutgoing, streamOf } from "../support/streams.ts";
import { connectProbe, headOf, type Protocol, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, envelope, readStream } from "./raw.ts";

const exceeded = { code: "DeadlineExceeded", reason: "DEADLINE_EXCEEDED" };
const never = () => new Promise<never>(() => {});

/**
 * Sets a deadline as a header, so that only the server enforces it: a client with `timeoutMs` has a timer
 * too.
 */
function deadline(protocol: Protocol, grpc: string, connect: string) {
  return protocol.startsWith("Connect") ? { "connect-timeout-ms": connect } : { "grpc-timeout": grpc };
}

/** What a stream sent before it ended, and how it was refused, if it was. */
async function readAll(items: AsyncIterable<{ text: string }>) {
  const texts: string[] = [];
  try {
    for await (const { text } of items) texts.push(text);
    return [texts, undefined];
  } catch (error) {
    return [texts, describeRefusal(ConnectError.from(error))];
  }
}

/** Sends a message, and then nothing. */
function sendOne() {
  const items = createOutgoing<{ text: string }>();
  items.send({ text: "one" });
  return items;
}

describe.each(protocols)("over %s", (protocol) => {
  it("the handler signal aborts when the caller disconnects", async () => {
    const asked = Promise.withResolvers<AbortSignal>();
    const ask = (_item: unknown, { signal }: { signal: AbortSignal }) => {
      asked.resolve(signal);
      return never();
    };
    const { url } = await serveProbe({ ask });
    const caller = new AbortController();
    const call = refusal(connectProbe(protocol, url).ask({}, { signal: caller.signal }));
    const aborted = once(await asked.promise, "abort");
    caller.abort();
    expect(await call).toMatchObject({ code: "Canceled" });
    await aborted;
  });

  it("the handler signal aborts when the handler has failed, so that remaining work stops", async () => {
    const signals: AbortSignal[] = [];
    const { url } = await serveProbe({
      ask: (_item, { signal }) => {
        signals.push(signal);
        throw new ConnectError("no", Code.Aborted);
      },
    });
    expect(await refusal(connectProbe(protocol, url).ask({}))).toMatchObject({ code: "Aborted" });
    await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  it("each call aborted by shutdown has its own request ID", async () => {
    let begun = 0;
    const untilAborted = async (_item: unknown, { signal }: { signal: AbortSignal }): Promise<never> => {
      begun += 1;
      await once(signal, "abort");
      throw signal.reason;
    };
    const { url, server } = await serveProbe({
      ask: untilAborted,
      // biome-ignore lint/correctness/useYield: it waits until it is aborted
      async *watch(item, context) {
        await untilAborted(item, context);
      },
    });
    const probe = connectProbe(protocol, url);
    const names = ["one-1", "two-2", "three-3"];
    const calls = names.flatMap((id) => {
      const options = { headers: { "x-request-id": id } };
      return [probe.ask({}, options), Array.fromAsync(probe.watch({}, options))];
    });
    const idOf = (error: unknown) => ConnectError.from(error).metadata.get("x-request-id");
    const ids = Promise.all(calls.map((call) => call.then(() => "ended", idOf)));
    await expect.poll(() => begun).toBe(6);
    const closed = server.close();
    expect(await ids).toEqual(names.flatMap((id) => [id, id]));
    await closed;
  });

  it("a stream without a deadline outlives the limit on unary calls", async () => {
    const watch = async function* () {
      yield { text: "one" };
      await delay(60);
      yield { text: "two" };
    };
    const { url } = await serveProbe({ watch }, { maxCallMs: 20 });
    expect(await readAll(connectProbe(protocol, url).watch({}))).toEqual([["one", "two"], undefined]);
  });

  it("a client stream that never ends fails at the deadline", async () => {
    const { url } = await serveProbe();
    const items = sendOne();
    const call = connectProbe(protocol, url).collect(items, { headers: deadline(protocol, "50m", "50") });
    expect(await refusal(call)).toEqual(exceeded);
    items.end();
  });

  it.each([
    // Longer than a timer. The deadline of the other protocol is ignored.
    ["99999999S", "9999999999", "0m", "0"],
    ["99999999H", "9999999999", "not a time", "not a time"],
    ["2147484S", "2147483648", "0m", "0"],
  ])("a deadline of %s, or %s ms, does not fire at once", async (grpc, connect, otherGrpc, otherConnect) => {
    const { url } = await serveProbe({
      async ask(item) {
        await delay(20);
        return item;
      },
      async *watch(item, { signal }) {
        await Promise.race([delay(20), once(signal, "abort")]);
        yield item;
      },
    });
    const client = connectProbe(protocol, url);
    const others = { "grpc-timeout": otherGrpc, "connect-timeout-ms": otherConnect };
    const options = { headers: { ...others, ...deadline(protocol, grpc, connect) } };
    expect((await client.ask({ text: "a" }, options)).text).toBe("a");
    expect(await readAll(client.watch({ text: "a" }, options))).toEqual([["a"], undefined]);
    expect((await client.collect(streamOf({ text: "a" }, { text: "b" }), options)).text).toBe("ab");
  });
});

describe("over every protocol at once,", () => {
  /** For a call that has to do something before its deadline on a busy machine. */
  const longer = (protocol: Protocol) => ({ headers: deadline(protocol, "2000m", "2000") });
  const overHttp2 = ["gRPC", "gRPC with JSON", "Connect over HTTP/2"] as const;

  it.each<[what: string, names: readonly Protocol[], wait: (signal: AbortSignal) => Promise<unknown>]>([
    ["whose handler waits forever", protocols, never],
    ["whose handler simply stops at the deadline", protocols, (signal) => once(signal, "abort")],
    ["that is bidirectional", overHttp2, never],
  ])("a stream %s fails at the deadline, after its earlier messages", async (what, names, wait) => {
    const { url } = await serveProbe({
      async *watch(_item, { signal }) {
        yield { text: "one" };
        await wait(signal);
      },
    });
    const read = async (protocol: Protocol) => {
      const client = connectProbe(protocol, url);
      const isChat = what === "that is bidirectional";
      return readAll(isChat ? client.chat(sendOne(), longer(protocol)) : client.watch({}, longer(protocol)));
    };
    expect(await Promise.all(names.map(read))).toEqual(names.map(() => [["one"], exceeded]));
  });
});
// The limit of a unary call is the same code for all protocols; test/calls/unary-call.test.ts has its rules.
it("over REST, a handler that ignores its signal ends at the server limit", async () => {
  const { url } = await serveProbe({ look: never }, { maxCallMs: 50 });
  expect((await fetch(`${url}/probe/look`)).status).toBe(504);
});

const json = Buffer.from('{"text":"a"}');
const restHead = { ...headOf("Ask", "application/json"), ":path": "/probe/ask" };

it.each([
  ["gRPC", headOf("Ask"), envelope("")],
  ["gRPC with JSON", headOf("Ask", "application/grpc+json"), envelope(json)],
  ["gRPC-Web", headOf("Ask", "application/grpc-web+proto"), envelope("")],
  ["Connect", headOf("Ask", "application/proto"), Buffer.from("\n\x01a")],
  ["Connect with JSON", headOf("Ask", "application/json"), json],
  ["REST", restHead, json],
])("over %s, a call whose deadline passes on its way is not handled", async (_, head, body) => {
  let calls = 0;
  const ask = (item: object) => {
    calls += 1;
    return item;
  };
  const { url } = await serveProbe({ ask });
  for (const ms of [0, 50]) {
    const timeout = { "grpc-timeout": `${ms}m`, "connect-timeout-ms": `${ms}` };
    const stream = connectHttp2(url).request({ ...head, ...timeout });
    const answered = readStream(stream);
    stream.write(body.subarray(0, ms === 0 ? body.length : 3));
    await answered;
    stream.end(ms === 0 ? undefined : body.subarray(3));
    await setImmediate();
  }
  expect(calls).toBe(0);
});

const longestTimerMs = 2 ** 31 - 1;

describe("readTimeout", () => {
  it.each([
    ["grpc-timeout", "1H", 3_600_000],
    ["grpc-timeout", "2M", 120_000],
    ["grpc-timeout", "3S", 3000],
    ["grpc-timeout", "4m", 4],
    ["grpc-timeout", "5000u", 5],
    ["grpc-timeout", "6000000n", 6],
    ["grpc-timeout", "00000000S", 0],
    ["grpc-timeout", "99999999m", 99_999_999],
    ["grpc-timeout", "2147484S", longestTimerMs],
    ["grpc-timeout", "99999999H", longestTimerMs],
    ["connect-timeout-ms", "5000", 5000],
    ["connect-timeout-ms", "9999999999", longestTimerMs],
  ])("reads %s: %s", (header, text, milliseconds) => {
    expect(readTimeout(new Headers({ [header]: text }))).toBeCloseTo(milliseconds, 6);
  });

  it("returns undefined without a header", () => {
    expect(readTimeout(new Headers())).toBeUndefined();
  });

  const refused: Readonly<Record<string, readonly string[]>> = {
    "grpc-timeout": ["", "5", "S", "5s", "5 S", "-5S", "1.5S", "1e3S", "5SS", "5ms", "123456789S", "5S, 6S"],
    "connect-timeout-ms": ["", "a", "-1", "1.5", "5S", "12345678901", "1, 2"],
  };
  for (const [header, texts] of Object.entries(refused)) {
    it.each(texts)(`refuses ${header}: %j`, async (text) => {
      const read = Promise.try(() => readTimeout(new Headers({ [header]: text })));
      expect(await refusal(read)).toMatchObject({ reason: "TIMEOUT_INVALID" });
    });
  }
});
