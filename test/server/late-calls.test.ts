/** Calls that have ended before their handler begins, and what remains of a call once it has ended. */
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ItemSchema } from "../gen/probing/probe_pb.ts";
import { connectProbe, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, envelope, readStream } from "./raw.ts";

const path = "/probing.Probe/Ask";
const message = toBinary(ItemSchema, create(ItemSchema, { text: "a" }));
const json = Buffer.from('{"text":"a"}');

/** Forms of a unary call. */
const forms = {
  gRPC: { path, type: "application/grpc", body: envelope(message) },
  "gRPC with JSON": { path, type: "application/grpc+json", body: envelope(json) },
  "gRPC-Web": { path, type: "application/grpc-web+proto", body: envelope(message) },
  Connect: { path, type: "application/proto", body: Buffer.from(message) },
  "Connect with JSON": { path, type: "application/json", body: json },
  REST: { path: "/probe/ask", type: "application/json", body: json },
} as const;

/** Deadline headers. */
const deadlineIn = (type: string, ms: number) =>
  type.includes("grpc") ? { "grpc-timeout": `${ms}m` } : { "connect-timeout-ms": `${ms}` };

describe.each(Object.entries(forms))("over %s", (_form, form) => {
  async function begin(timeoutMs: number) {
    let calls = 0;
    const { url } = await serveProbe({
      ask: (item) => {
        calls += 1;
        return item;
      },
    });
    const stream = connectHttp2(url).request({
      ":method": "POST",
      ":path": form.path,
      "content-type": form.type,
      te: "trailers",
      ...deadlineIn(form.type, timeoutMs),
    });
    stream.on("error", () => {});
    return { stream, countCalls: () => calls };
  }

  it("a call whose deadline has passed does not reach its handler", async () => {
    const { stream, countCalls } = await begin(0);
    stream.end(form.body);
    await readStream(stream);
    await setImmediate();
    expect(countCalls()).toBe(0);
  });

  it("a call whose deadline passes while its request arrives does not reach its handler", async () => {
    const { stream, countCalls } = await begin(50);
    const answered = readStream(stream);
    stream.write(form.body.subarray(0, 3));
    await answered;
    stream.end(form.body.subarray(3));
    await setImmediate();
    expect(countCalls()).toBe(0);
  });
});

describe.each(protocols)("over %s", (protocol) => {
  it("the signal of a call aborts when its handler has failed, so that remaining work stops", async () => {
    const signals: AbortSignal[] = [];
    const { url } = await serveProbe({
      ask: (_item, { signal }) => {
        signals.push(signal);
        throw new ConnectError("no", Code.Aborted);
      },
    });
    await expect(connectProbe(protocol, url).ask({})).rejects.toThrow("no");
    await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  it("each call aborted by shutdown has its own request ID", async () => {
    let begun = 0;
    const untilAborted = async (signal: AbortSignal): Promise<never> => {
      begun += 1;
      await once(signal, "abort");
      throw signal.reason;
    };
    const { url, server } = await serveProbe({
      ask: (_item, { signal }) => untilAborted(signal),
      // biome-ignore lint/correctness/useYield: it waits until it is aborted
      async *watch(_item, { signal }) {
        await untilAborted(signal);
      },
    });
    const probe = connectProbe(protocol, url);
    const names = ["one-1", "two-2", "three-3"];
    const idOf = (error: unknown) => error instanceof ConnectError && error.metadata.get("x-request-id");
    const unary = names.map((id) => probe.ask({}, { headers: { "x-request-id": id } }).catch(idOf));
    const streams = names.map(async (id) => {
      try {
        for await (const _item of probe.watch({}, { headers: { "x-request-id": id } }));
        return "ended";
      } catch (error) {
        return idOf(error);
      }
    });
    await expect.poll(() => begun).toBe(6);
    const closed = server.close();
    expect(await Promise.all(unary)).toEqual(names);
    expect(await Promise.all(streams)).toEqual(names);
    await closed;
  });
});
