import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { describeRefusal, refusal } from "../support/refusal.ts";
import { createOutgoing } from "../support/streams.ts";
import { connectProbe, type Protocol, protocols, serveProbe } from "./probe.ts";

const exceeded = { code: "DeadlineExceeded", reason: "DEADLINE_EXCEEDED" };
const never = () => new Promise<never>(() => {});

/**
 * Sets a deadline as a header, so that only the server enforces it: a client with `timeoutMs` has a timer
 * too.
 */
function deadline(protocol: Protocol, grpc: string, connect: string) {
  return protocol.startsWith("Connect") ? { "connect-timeout-ms": connect } : { "grpc-timeout": grpc };
}

describe.each(protocols)("over %s", (protocol) => {
  const short = { headers: deadline(protocol, "50m", "50") };

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

  it("a stream without a deadline outlives the limit on unary calls", async () => {
    const { url } = await serveProbe(
      {
        async *watch() {
          yield { text: "one" };
          await delay(60);
          yield { text: "two" };
        },
      },
      { maxCallMs: 20 },
    );
    expect(await readAll(connectProbe(protocol, url).watch({}))).toEqual([["one", "two"], undefined]);
  });

  it("a client stream that never ends fails at the deadline", async () => {
    const { url } = await serveProbe();
    const items = createOutgoing<{ text: string }>();
    items.send({ text: "one" });
    const call = connectProbe(protocol, url).collect(items, short);
    expect(await refusal(call)).toEqual(exceeded);
    items.end();
  });

  it.each([
    ["99999999S", "9999999999"],
    ["99999999H", "9999999999"],
    ["2147484S", "2147483648"],
  ])("a deadline of %s, or %s ms, does not fire at once for any kind of call", async (grpc, connect) => {
    const { url } = await serveProbe({
      async ask(item) {
        await delay(20);
        return item;
      },
      async *watch(item) {
        await delay(20);
        yield item;
      },
    });
    const client = connectProbe(protocol, url);
    const options = { headers: deadline(protocol, grpc, connect) };
    expect((await client.ask({ text: "a" }, options)).text).toBe("a");
    expect(await readAll(client.watch({ text: "a" }, options))).toEqual([["a"], undefined]);
    expect((await client.collect(slowly("a", "b"), options)).text).toBe("ab");
  });
});

it.each(["gRPC", "Connect over HTTP/2"] as const)(
  "over %s, the deadline of the other protocol is ignored",
  async (protocol) => {
    const { url } = await serveProbe({
      async *watch(item, { signal }) {
        await Promise.race([delay(20), once(signal, "abort")]);
        yield item;
      },
    });
    const client = connectProbe(protocol, url);
    const other = protocol === "gRPC" ? "Connect over HTTP/2" : "gRPC";
    // Longer than a timer.
    const own = deadline(protocol, "99999999H", "9999999999");
    for (const [grpc, connect] of [
      ["0m", "0"],
      ["not a time", "not a time"],
    ] as const) {
      const headers = { ...own, ...deadline(other, grpc, connect) };
      expect((await client.ask({ text: "a" }, { headers })).text).toBe("a");
      expect(await readAll(client.watch({ text: "a" }, { headers }))).toEqual([["a"], undefined]);
    }
  },
);

/** For a call that has to do something before its deadline on a busy machine. */
const longer = (protocol: Protocol) => ({ headers: deadline(protocol, "2000m", "2000") });

/** Uses all protocols at once: each waits for its deadline. */
async function expectOverAll<Result>(
  names: readonly Protocol[],
  use: (protocol: Protocol) => Promise<Result>,
  expected: Result,
): Promise<void> {
  const results = await Promise.all(names.map(async (name) => [name, await use(name)] as const));
  expect(results).toEqual(names.map((name) => [name, expected]));
}

describe("over every protocol", () => {
  it.each([
    ["a stream whose handler waits forever fails at the deadline, after its earlier messages", never],
    [
      "a stream whose handler simply stops at the deadline fails, and does not look complete",
      (signal: AbortSignal) => once(signal, "abort"),
    ],
  ])("%s", async (_title, wait) => {
    const { url } = await serveProbe({
      async *watch(_item, { signal }) {
        yield { text: "one" };
        await wait(signal);
      },
    });
    const read = (protocol: Protocol) => readAll(connectProbe(protocol, url).watch({}, longer(protocol)));
    await expectOverAll(protocols, read, [["one"], exceeded]);
  });

  it("a bidirectional stream fails at the deadline", async () => {
    const { url } = await serveProbe();
    const chat = async (protocol: Protocol) => {
      const items = createOutgoing<{ text: string }>();
      items.send({ text: "one" });
      const read = await readAll(connectProbe(protocol, url).chat(items, longer(protocol)));
      items.end();
      return read;
    };
    await expectOverAll(["gRPC", "gRPC with JSON", "Connect over HTTP/2"], chat, [["one"], exceeded]);
  });
});

// The limit of a unary call is the same code for all protocols; test/calls/unary-call.test.ts has its rules.
it("over REST, a handler that ignores its signal ends at the server limit", async () => {
  const { url } = await serveProbe({ look: never }, { maxCallMs: 50 });
  expect((await fetch(`${url}/probe/look`)).status).toBe(504);
});

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

async function* slowly(...texts: string[]) {
  for (const text of texts) {
    await delay(20);
    yield { text };
  }
}
