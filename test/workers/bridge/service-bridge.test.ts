/** Calls that one thread accepts and another answers. */
import { MessageChannel, Worker } from "node:worker_threads";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { ErrorInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { CryptoBusyError } from "../../../src/crypto/work-queue.ts";
import { findReason, refuse, refuseField } from "../../../src/errors.ts";
import { readPrincipal } from "../../../src/identity/principal.ts";
import {
  type Caller,
  callerKey,
  clientKey,
  readClientAddress,
  repeatableKey,
} from "../../../src/protocol/call-values.ts";
import { forwardServices } from "../../../src/workers/bridge/service-bridge.ts";
import { type Item, ItemSchema, Probe } from "../../gen/probing/probe_pb.ts";
import { connectProbe } from "../../server/probe.ts";
import { serve } from "../../server/serve.ts";
import { failureOf, refusal } from "../../support/refusal.ts";
import { createOutgoing, drain, streamOf } from "../../support/streams.ts";
import { charged, contextOf, createBridge, implementationOf, item, offerProbe } from "./bridge.ts";

const none = { forwarded: 0, atHome: 0 };
const stopping = { code: "Unavailable", reason: "SHUTTING_DOWN" };
const canceled = refuse("CALL_CANCELED", "gone");

/** Ends when a signal aborts, with its reason. */
function abortOf(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason)));
}

/** Ends never. */
const forever = new Promise<never>(() => {});

async function readAll(items: AsyncIterable<{ readonly text?: string }>): Promise<unknown[]> {
  const texts: unknown[] = [];
  for await (const { text } of items) texts.push(text);
  return texts;
}

describe("a forwarded call", () => {
  it("of every kind is answered", async () => {
    const { probe, callsInProgress } = createBridge({
      ask: ({ text }) => ({ text: `asked ${text}` }),
      async *watch({ text }) {
        for (const part of text) yield { text: part };
      },
      async collect(items) {
        return { text: (await readAll(items)).join("") };
      },
      async *chat(items) {
        for await (const { text } of items) yield { text: text.toUpperCase() };
      },
    });
    expect(await probe.ask(item({ text: "a" }), contextOf("ask"))).toMatchObject({ text: "asked a" });
    expect(await readAll(probe.watch(item({ text: "0123456789" }), contextOf("watch")))).toEqual([
      ..."0123456789",
    ]);
    const letters = () => streamOf(...[..."abcdefghij"].map((text) => item({ text })));
    expect(await probe.collect(letters(), contextOf("collect"))).toMatchObject({ text: "abcdefghij" });
    expect(await readAll(probe.chat(letters(), contextOf("chat")))).toEqual([..."ABCDEFGHIJ"]);
    expect(callsInProgress()).toEqual(none);
  });

  it("is answered among many that run at once", async () => {
    const { probe } = createBridge({ ask: async (question) => question });
    const texts = Array.from({ length: 100 }, (_, i) => `call ${i}`);
    const answers = texts.map(async (text) => probe.ask(item({ text }), contextOf("ask")));
    expect(await Promise.all(answers)).toMatchObject(texts.map((text) => ({ text })));
  });

  it.each([0, 100, 65_536, 1_000_000])("carries %i bytes each way", async (bytes) => {
    const { probe } = createBridge({ ask: (question) => question });
    const question = item({ data: new Uint8Array(bytes).fill(7) });
    const { data = new Uint8Array() } = await probe.ask(question, contextOf("ask"));
    // Comparing a million elements one by one takes a second.
    expect(Buffer.compare(data, question.data)).toBe(0);
    expect(question.data).toHaveLength(bytes);
  });

  it("talks both ways by turns", async () => {
    const { probe } = createBridge({
      async *chat(items) {
        yield* items;
      },
    });
    const outgoing = createOutgoing<Item>();
    const answers = probe.chat(outgoing, contextOf("chat"))[Symbol.asyncIterator]();
    for (const text of "abcdefghij") {
      outgoing.send(item({ text }));
      expect((await answers.next()).value).toMatchObject({ text });
    }
    outgoing.end();
    expect((await answers.next()).done).toBe(true);
  });
});

describe("the context of a forwarded call", () => {
  it("has the caller, the address, the idempotency key, the headers and the deadline", async () => {
    const caller: Caller & { userId: string } = {
      subject: "ada",
      role: "admin",
      userId: "user-1",
      issuedAt: new Date(1000),
      expiresAt: new Date(2000),
      revocation: { group: "g", check: async () => {} },
    };
    const repeatable = { idempotencyKey: "k", requestHash: "h" };
    const contextValues = createContextValues()
      .set(callerKey, caller)
      .set(clientKey, "192.0.2.1")
      .set(repeatableKey, repeatable);
    const seen: unknown[] = [];
    const { probe } = createBridge({
      ask: (_item, context) => {
        seen.push(context.values.get(callerKey), readPrincipal(context).userId, readClientAddress(context));
        seen.push(context.values.get(repeatableKey), context.requestHeader.get("X-Name"));
        seen.push(context.method, context.service, context.protocolName, context.url);
        expect(context.timeoutMs()).toSatisfy((ms: number) => ms > 50_000 && ms <= 60_000);
        return {};
      },
    });
    const requestHeader = { "x-name": "value" };
    await probe.ask(item(), contextOf("ask", { contextValues, requestHeader, timeoutMs: 60_000 }));
    const { revocation, ...known } = caller;
    expect(seen).toEqual([
      ...[known, "user-1", "192.0.2.1", repeatable, "value"],
      ...[Probe.method.ask, Probe, "grpc", "http://localhost/"],
    ]);
  });

  it("has no caller, no key and no deadline if the call has none", async () => {
    const { probe } = createBridge({
      ask: ({ text }, { values, timeoutMs }) => {
        expect([values.get(callerKey), values.get(repeatableKey), timeoutMs()]).toEqual([
          undefined,
          undefined,
          undefined,
        ]);
        return { text };
      },
    });
    expect(await probe.ask(item({ text: "seen" }), contextOf("ask"))).toMatchObject({ text: "seen" });
  });

  it("is charged to its caller everywhere in the handler", async () => {
    const client = () => charged.getStore()?.get(clientKey);
    let afterLeaving: string | undefined;
    const { probe } = createBridge({
      async *chat(items) {
        try {
          for await (const _item of items) yield { text: client() ?? "nobody" };
        } finally {
          afterLeaving = client();
        }
      },
    });
    const contextValues = createContextValues().set(clientKey, "192.0.2.1");
    const requests = streamOf(...Array.from({ length: 10 }, () => item()));
    const texts = await readAll(probe.chat(requests, contextOf("chat", { contextValues })));
    expect([...new Set(texts), afterLeaving]).toEqual(["192.0.2.1", "192.0.2.1"]);
    expect(client()).toBeUndefined();
  });

  it("gets the headers and the trailers of the answer", async () => {
    const { probe } = createBridge({
      ask: (_item, { responseHeader, responseTrailer }) => {
        responseHeader.set("x-head", "1");
        responseHeader.append("set-cookie", "a=1");
        responseHeader.append("set-cookie", "b=2");
        responseTrailer.set("x-trail", "2");
        return {};
      },
    });
    const context = contextOf("ask", { responseHeader: { "x-head": "old", "x-own": "own" } });
    await probe.ask(item(), context);
    expect([...context.responseHeader]).toEqual([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["x-head", "1"],
      ["x-own", "own"],
    ]);
    expect([...context.responseTrailer]).toEqual([["x-trail", "2"]]);
  });

  it("gets the headers of a stream with its first message", async () => {
    const { probe } = createBridge({
      async *watch(_item, { responseHeader, responseTrailer }) {
        responseHeader.set("x-head", "1");
        yield {};
        responseTrailer.set("x-trail", "2");
      },
    });
    const context = contextOf("watch");
    const answers = probe.watch(item(), context)[Symbol.asyncIterator]();
    await answers.next();
    expect(context.responseHeader.get("x-head")).toBe("1");
    await answers.next();
    expect(context.responseTrailer.get("x-trail")).toBe("2");
  });

  it("gets the headers of a failure", async () => {
    const { probe } = createBridge({
      ask: (_item, { responseHeader }) => {
        responseHeader.set("x-head", "1");
        throw canceled;
      },
    });
    const context = contextOf("ask");
    await failureOf(Promise.resolve(probe.ask(item(), context)));
    expect(context.responseHeader.get("x-head")).toBe("1");
  });
});

/** The error of a call whose handler throws. */
async function errorAcross(thrown: unknown): Promise<unknown> {
  const { probe, callsInProgress } = createBridge({
    ask: () => {
      throw thrown;
    },
    async *watch() {
      yield {};
      throw thrown;
    },
  });
  const error = await caught(async () => probe.ask(item(), contextOf("ask")));
  const inStream = await caught(() => drain(probe.watch(item(), contextOf("watch"))));
  expect(inStream).toEqual(error);
  expect(callsInProgress()).toEqual(none);
  return error;
}

async function caught(run: () => Promise<unknown>): Promise<unknown> {
  try {
    return await run();
  } catch (thrown) {
    return { thrown };
  }
}

/** The ConnectError of a call whose handler throws. */
async function refusalAcross(thrown: unknown): Promise<ConnectError> {
  const { thrown: error } = (await errorAcross(thrown)) as { readonly thrown: unknown };
  if (error instanceof ConnectError) return error;
  throw new Error("the call failed with another error", { cause: error });
}

describe("an error of a handler", () => {
  it("keeps its code, message, metadata, reason and details", async () => {
    const original = refuseField("name", "is too long");
    original.metadata.set("retry-after", "1");
    const error = await refusalAcross(original);
    expect([error.code, error.message, error.rawMessage]).toEqual([
      Code.InvalidArgument,
      original.message,
      original.rawMessage,
    ]);
    expect([...error.metadata]).toEqual([...original.metadata]);
    expect(findReason(error)).toBe("FIELD_INVALID");
    expect(await refusal(Promise.reject(error))).toEqual(await refusal(Promise.reject(original)));
    // With its descriptor, as Connect needs it to show the detail.
    expect(error.details.map((detail) => "desc" in detail)).toEqual([true, true]);
  });

  it("keeps details of types that are not ours, and of ours that cannot be read", async () => {
    const original = new ConnectError("no", Code.Aborted, undefined, [
      { desc: ItemSchema, value: { text: "detail" } },
    ]);
    const broken = { type: ErrorInfoSchema.typeName, value: new Uint8Array([255]) };
    original.details.push(broken);
    const error = await refusalAcross(original);
    expect(error.findDetails(ItemSchema)).toMatchObject([{ text: "detail" }]);
    expect(error.details[1]).toEqual(broken);
  });

  it("is explained where its class is known", async () => {
    const error = await refusalAcross(new CryptoBusyError(1500));
    expect(findReason(error)).toBe("SERVER_BUSY");
    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n } }]);
    expect(error.metadata.get("retry-after")).toBe("2");
  });

  it("keeps the cause of a fault for the log", async () => {
    const original = refuse("INTERNAL", "internal error");
    original.cause = new TypeError("bug", { cause: new Error("deeper") });
    const { cause, stack } = await refusalAcross(original);
    expect(cause).toMatchObject({ name: "TypeError", message: "bug", cause: { message: "deeper" } });
    expect(stack).toBe(original.stack);
  });

  it("that is unknown keeps its name, message and stack for the log", async () => {
    const original = new RangeError("bug");
    const { thrown } = (await errorAcross(original)) as { readonly thrown: Error };
    expect(thrown).not.toBeInstanceOf(ConnectError);
    expect([thrown.name, thrown.message, thrown.stack]).toEqual(["RangeError", "bug", original.stack]);
  });

  const odd: [string, unknown, string][] = [
    ["a text", "text", "text"],
    ["nothing", undefined, "undefined"],
    ["an object without a prototype", Object.create(null), "the error of a handler cannot be read"],
    ["its own cause", Object.assign(new Error("loop"), { cause: undefined }), "loop"],
  ];
  const [, loop] = odd[3] ?? [];
  if (loop instanceof Error) loop.cause = loop;
  it.each(odd)("that is %s is an error too", async (_name, thrown, message) => {
    expect(await errorAcross(thrown)).toMatchObject({ thrown: { message } });
  });

  it("of a client that sends a wrong message reaches its handler", async () => {
    let seen: unknown;
    const { probe } = createBridge({
      async collect(items) {
        seen = await drain(items).catch((error: unknown) => error);
        throw seen;
      },
    });
    async function* requests(): AsyncGenerator<Item> {
      yield item();
      throw refuse("MESSAGE_MALFORMED", "no message");
    }
    const expected = { code: "InvalidArgument", reason: "MESSAGE_MALFORMED" };
    expect(await refusal(probe.collect(requests(), contextOf("collect")))).toEqual(expected);
    expect(await refusal(Promise.reject(seen))).toEqual(expected);
  });

  it("for a message that cannot be encoded ends the call", async () => {
    let isReturned = false;
    const { probe, callsInProgress } = createBridge({
      async *watch() {
        try {
          yield { number: "no number" as unknown as bigint };
        } finally {
          isReturned = true;
        }
      },
    });
    expect(await caught(() => drain(probe.watch(item(), contextOf("watch"))))).toHaveProperty("thrown");
    expect(isReturned).toBe(true);
    expect(callsInProgress()).toEqual(none);
  });

  it("for a header that cannot be sent ends the call", async () => {
    const { probe, forwarder } = createBridge({
      ask: (_item, { responseHeader }) => {
        responseHeader.set("x-head", "two\nlines");
        return {};
      },
    });
    expect(await caught(async () => probe.ask(item(), contextOf("ask")))).toHaveProperty("thrown");
    expect(forwarder.callsInProgress).toBe(0);
  });
});

describe("a stream", () => {
  it("of responses is at most four messages ahead of its reader", async () => {
    let produced = 0;
    const { probe } = createBridge({
      ask: (question) => question,
      async *watch() {
        for (;;) {
          produced += 1;
          yield {};
        }
      },
    });
    const answers = probe.watch(item(), contextOf("watch"))[Symbol.asyncIterator]();
    for (let taken = 1; taken <= 20; taken += 1) {
      await answers.next();
      // Later calls overtake no message, so what could arrive has arrived.
      await probe.ask(item(), contextOf("ask"));
      await probe.ask(item(), contextOf("ask"));
      expect(produced).toBeLessThanOrEqual(taken + 4);
      expect(produced).toBeGreaterThan(taken);
    }
  });

  it("of requests is at most four messages ahead of its handler", async () => {
    let sent = 0;
    async function* requests(): AsyncGenerator<Item> {
      for (;;) {
        sent += 1;
        yield item();
      }
    }
    const { probe } = createBridge({
      ask: (question) => question,
      async *chat(items) {
        for await (const _item of items) yield {};
      },
    });
    const answers = probe.chat(requests(), contextOf("chat"))[Symbol.asyncIterator]();
    for (let taken = 1; taken <= 20; taken += 1) {
      await answers.next();
      await probe.ask(item(), contextOf("ask"));
      await probe.ask(item(), contextOf("ask"));
      // Four that the handler has not taken, and four answers that are not read.
      expect(sent).toBeLessThanOrEqual(taken + 9);
    }
  });

  it("ends at home when its reader leaves, even while it waits", async () => {
    const left = Promise.withResolvers<unknown>();
    const { probe, callsInProgress } = createBridge({
      async *watch(_item, { signal }) {
        yield { text: "first" };
        left.resolve(await abortOf(signal));
      },
    });
    const answers = probe.watch(item(), contextOf("watch"))[Symbol.asyncIterator]();
    await answers.next();
    const second = answers.next();
    await answers.return?.();
    expect((await second).done).toBe(true);
    expect(await refusal(Promise.reject(await left.promise))).toMatchObject({ reason: "CALL_CANCELED" });
    expect(callsInProgress()).toEqual(none);
  });

  it("of requests ends when its handler leaves it", async () => {
    const left = Promise.withResolvers<void>();
    async function* requests(): AsyncGenerator<Item> {
      try {
        for (;;) yield item({ text: "one" });
      } finally {
        left.resolve();
      }
    }
    const { probe, callsInProgress } = createBridge({
      async collect(items) {
        for await (const { text } of items) return { text };
        return {};
      },
    });
    expect(await probe.collect(requests(), contextOf("collect"))).toMatchObject({ text: "one" });
    await left.promise;
    expect(callsInProgress()).toEqual(none);
  });

  it("of requests does not outlive its call, and is left as it is", async () => {
    let isReturned = false;
    const requests: AsyncIterable<Item> = {
      [Symbol.asyncIterator]: () => ({
        next: () => forever,
        return: async () => {
          isReturned = true;
          return { done: true, value: undefined };
        },
      }),
    };
    const { probe, callsInProgress } = createBridge({
      async *chat() {
        yield { text: "enough" };
      },
    });
    expect(await readAll(probe.chat(requests, contextOf("chat")))).toEqual(["enough"]);
    expect([callsInProgress(), isReturned]).toEqual([none, false]);
  });
});

describe("an aborted call", () => {
  const kinds = ["ask", "watch", "collect", "chat"] as const;

  it.each(kinds)("of %s ends on both sides with its reason", async (kind) => {
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<unknown>();
    const run = async (signal: AbortSignal): Promise<never> => {
      started.resolve();
      ended.resolve(await abortOf(signal));
      return forever;
    };
    const { probe, callsInProgress } = createBridge({
      ask: (_item, { signal }) => run(signal),
      async *watch(_item, { signal }) {
        yield await run(signal);
      },
      collect: (_items, { signal }) => run(signal),
      async *chat(_items, { signal }) {
        yield await run(signal);
      },
    });
    const context = contextOf(kind);
    const never = { [Symbol.asyncIterator]: () => ({ next: () => forever }) };
    const calls = {
      ask: async () => probe.ask(item(), context),
      watch: () => drain(probe.watch(item(), context)),
      collect: () => probe.collect(never, context),
      chat: () => drain(probe.chat(never, context)),
    };
    const outcome = caught(calls[kind]);
    await started.promise;
    context.abort(canceled);
    expect(await outcome).toEqual({ thrown: canceled });
    expect(await refusal(Promise.reject(await ended.promise))).toMatchObject({ reason: "CALL_CANCELED" });
    expect(callsInProgress()).toEqual(none);
  });

  it("ends a handler that waits for its next request", async () => {
    const ended = Promise.withResolvers<unknown>();
    const { probe } = createBridge({
      async *chat(items) {
        yield {};
        await drain(items).catch(ended.resolve);
      },
    });
    const context = contextOf("chat");
    const answers = probe.chat(createOutgoing<Item>(), context)[Symbol.asyncIterator]();
    await answers.next();
    context.abort(canceled);
    expect(await refusal(Promise.reject(await ended.promise))).toMatchObject({ reason: "CALL_CANCELED" });
    expect(await caught(() => answers.next())).toEqual({ thrown: canceled });
  });

  it("is not sent if it was aborted before", async () => {
    let count = 0;
    const { probe, callsInProgress } = createBridge({
      ask: () => {
        count += 1;
        return {};
      },
    });
    const context = contextOf("ask");
    context.abort(canceled);
    expect(await caught(async () => probe.ask(item(), context))).toEqual({ thrown: canceled });
    await probe.ask(item(), contextOf("ask"));
    expect([count, callsInProgress()]).toEqual([1, none]);
  });

  it("does not mind an answer that is on its way", async () => {
    const { probe, callsInProgress } = createBridge({
      ask: (question) => question,
      async *watch() {
        for (;;) yield {};
      },
    });
    const context = contextOf("watch");
    await probe.watch(item(), context)[Symbol.asyncIterator]().next();
    context.abort(canceled);
    await probe.ask(item(), contextOf("ask"));
    expect(callsInProgress()).toEqual(none);
  });

  it("leaves no listener at its signal when it ends otherwise", async () => {
    const { probe, callsInProgress } = createBridge({ ask: (question) => question });
    const context = contextOf("ask");
    await probe.ask(item(), context);
    context.abort(canceled);
    await probe.ask(item(), contextOf("ask"));
    expect(callsInProgress()).toEqual(none);
  });
});

describe("when the home stops", () => {
  it("calls in progress end, and so do their handlers", async () => {
    const started = Promise.withResolvers<AbortSignal>();
    const { probe, home, callsInProgress } = createBridge({
      ask: (_item, { signal }) => {
        started.resolve(signal);
        return forever;
      },
    });
    const call = Promise.resolve(probe.ask(item(), contextOf("ask")));
    const signal = await started.promise;
    home.stop();
    expect(await refusal(call)).toEqual(stopping);
    expect(await refusal(Promise.reject(signal.reason))).toEqual(stopping);
    expect(callsInProgress()).toEqual(none);
  });

  it("a stream gives what has arrived, and then ends", async () => {
    const { probe, home } = createBridge({
      async *watch() {
        yield { text: "1" };
        yield { text: "2" };
        await forever;
      },
      ask: (question) => question,
    });
    const answers = probe.watch(item(), contextOf("watch"))[Symbol.asyncIterator]();
    expect(await answers.next()).toMatchObject({ value: { text: "1" } });
    await probe.ask(item(), contextOf("ask"));
    home.stop();
    expect(await answers.next()).toMatchObject({ value: { text: "2" } });
    expect(await refusal(answers.next())).toEqual(stopping);
  });

  it.each(["ask", "watch"] as const)(
    "later calls of %s are refused until there is another home",
    async (kind) => {
      const { forwarder, probe, home, port } = createBridge({});
      const closed = new Promise((resolve) => port.on("close", resolve));
      home.stop();
      await closed;
      const call = async () =>
        kind === "ask" ? probe.ask(item(), contextOf(kind)) : drain(probe.watch(item(), contextOf(kind)));
      expect(await refusal(call())).toEqual(stopping);
      offerProbe(forwarder, { ask: () => ({ text: "again" }), async *watch() {} });
      await call();
      expect(forwarder.callsInProgress).toBe(0);
    },
  );

  it("the home ends the calls of a forwarder whose port closes", async () => {
    const started = Promise.withResolvers<AbortSignal>();
    const { probe, port, callsInProgress } = createBridge({
      ask: (_item, { signal }) => {
        started.resolve(signal);
        return forever;
      },
    });
    const call = Promise.resolve(probe.ask(item(), contextOf("ask")));
    const aborted = abortOf(await started.promise);
    port.close();
    expect(await refusal(call)).toEqual(stopping);
    expect(await refusal(Promise.reject(await aborted))).toMatchObject({ reason: "CALL_CANCELED" });
    expect(callsInProgress()).toEqual(none);
  });
});

/** Starts a thread that is a home. */
function startHome() {
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL("home-thread.ts", import.meta.url), {
    workerData: { port: port1 },
    transferList: [port1],
    execArgv: [],
  });
  onTestFinished(async () => void (await worker.terminate()));
  return { worker, port: port2 };
}

describe("a server whose service is in another thread", () => {
  it("answers calls of every kind", async () => {
    const { worker, port } = startHome();
    const forwarder = forwardServices([Probe]);
    forwarder.connect(port);
    const { server, url } = await serve({ services: [...forwarder.services], limits: { maxDrainMs: 0 } });
    onTestFinished(() => server.close());
    const client = connectProbe("gRPC", url);
    expect(await client.ask({ text: "a" })).toMatchObject({ text: "a", number: BigInt(worker.threadId) });
    const numbers: bigint[] = [];
    for await (const { number } of client.watch({ number: 1000n })) numbers.push(number);
    expect(numbers).toEqual(Array.from({ length: 1000 }, (_, i) => BigInt(i)));
    const letters = () => streamOf(...[..."abcdefghij"].map((text) => ({ text })));
    expect(await client.collect(letters())).toMatchObject({ text: "abcdefghij" });
    expect(await readAll(client.chat(letters()))).toEqual([..."abcdefghij"]);
    expect(forwarder.callsInProgress).toBe(0);
  });

  it("refuses its calls when the thread dies, and answers again with the next one", async () => {
    const { worker, port } = startHome();
    const forwarder = forwardServices([Probe]);
    forwarder.connect(port);
    const probe = implementationOf(forwarder);
    await probe.ask(item(), contextOf("ask"));
    const call = Promise.resolve(probe.look(item(), contextOf("look")));
    const outcome = refusal(call);
    await worker.terminate();
    expect(await outcome).toEqual(stopping);
    const next = startHome();
    forwarder.connect(next.port);
    const number = BigInt(next.worker.threadId);
    expect(await probe.ask(item(), contextOf("ask"))).toMatchObject({ number });
    expect(forwarder.callsInProgress).toBe(0);
  });
});
