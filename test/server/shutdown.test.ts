import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { flags, frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { startServer } from "../support/start-server.ts";
import { createOutgoing } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { connectGrpc, connectProbe, headOf, type ProbeBehaviour, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, readToEnd, request } from "./raw.ts";

/** Starts the program, with a watch of its health and a conversation, both of which have begun. */
async function start(...args: string[]) {
  const server = await startServer({ dataDir: makeTemporaryDirectory(), args });
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  const transport = connectGrpc(server.url);
  const statuses = createClient(Health, transport).watch({})[Symbol.asyncIterator]();
  const readStatus = async (): Promise<number | undefined> => (await statuses.next()).value?.status;
  expect(await readStatus()).toBe(1);
  type Question = { readonly messageRequest: { readonly case: "listServices"; readonly value: string } };
  const questions = createOutgoing<Question>();
  const answers = createClient(ServerReflection, transport).serverReflectionInfo(questions);
  const reading = answers[Symbol.asyncIterator]();
  const ask = () => {
    questions.send({ messageRequest: { case: "listServices", value: "" } });
    return reading.next();
  };
  await ask();
  return { ...server, transport, readStatus, ask, end: questions.end, readAnswer: () => reading.next() };
}
const notServing = 2;
const stopping = { code: "Unavailable", reason: "SHUTTING_DOWN" };

describe("the program, when stopped,", { timeout: 120_000 }, () => {
  it("lets running calls finish, accepts no new ones, and exits with 0", async () => {
    const { transport, ...server } = await start("--max-drain-ms", "600000", "--max-call-ms", "600000");
    // Takes about a second.
    const slow = { data: Buffer.from("hello"), algorithm: "SLH-DSA-SHAKE-192s" };
    const signing = createClient(PqcService, transport).signData(slow);
    server.process.kill("SIGTERM");
    expect(await server.readStatus()).toBe(notServing);
    expect(await refusal(server.readStatus())).toEqual(stopping);
    await expect.poll(() => refusedConnection(server.authority)).toBe("ECONNREFUSED");

    expect((await server.ask()).done).toBe(false);
    server.end();
    expect((await server.readAnswer()).done).toBe(true);
    expect((await signing).signature).toHaveLength(16_224);
    expect(await server.exit).toMatchObject({ code: 0, signal: null });
  });

  it.each(["SIGTERM", "SIGINT"] as const)("by %s exits with 0 despite idle connections", async (signal) => {
    const server = await start();
    const idle = connectTcp(Number(new URL(server.url).port));
    idle.write("GET /api/hello HTTP/1.1\r\nhost: x\r\n\r\n");
    await once(idle, "data");
    const closed = readToEnd(idle);
    server.end();
    expect(await server.stop(signal)).toMatchObject({ code: 0, signal: null });
    await closed;
  });

  it("twice, ends at once", async () => {
    const server = await start();
    server.process.kill("SIGTERM");
    expect(await server.readStatus()).toBe(notServing);
    expect((await server.stop("SIGTERM")).code).toBe(1);
  });

  it("aborts whatever exceeds the limit, and exits with 0", async () => {
    const server = await start("--max-drain-ms", "100");
    const answer = refusal(server.readAnswer());
    expect(await server.stop()).toMatchObject({ code: 0, signal: null });
    expect((await answer).code).toBe("Unavailable");
  });
});

describe.each(protocols)("a stopping server, over %s,", (protocol) => {
  /** Begins a call, or a stream that has sent one message and will send another. */
  async function begin(kind: string, maxDrainMs: number) {
    const gate = makeGate();
    const behaviour: ProbeBehaviour = {
      ask: gate.ask,
      async *watch() {
        yield {};
        yield await gate.ask();
      },
    };
    const { server, url } = await serveProbe(behaviour, { maxDrainMs });
    const client = connectProbe(protocol, url);
    const items = kind === "call" ? client.ask({}).then((item) => [item]) : Array.fromAsync(client.watch({}));
    items.catch(() => {}); // The test sees it.
    await gate.entered;
    return { items, leave: gate.leave, server };
  }

  it.each(["call", "stream"])("lets a %s finish", async (kind) => {
    const { items, leave, server } = await begin(kind, 600_000);
    const closed = server.close();
    leave();
    expect((await items).at(-1)?.text).toBe("left");
    await closed;
  });

  it.each(["call", "stream"])("aborts a %s that exceeds the limit, and says when to retry", async (kind) => {
    const { items, server } = await begin(kind, 20);
    const closed = server.close();
    const error = await failureOf(items);
    expect(describeRefusal(error)).toEqual(stopping);
    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n } }]);
    expect(error.metadata.get("retry-after")).toBe("1");
    await closed;
  });
});

describe("a stopping server", () => {
  it("refuses new calls from a client that has received GOAWAY", async () => {
    const gate = makeGate();
    const { server, url } = await serveProbe({ ask: gate.ask }, { maxDrainMs: 600_000 });
    const session = connectHttp2(url);
    const goaway = once(session, "goaway");
    const running = request(session, headOf("Ask"), envelope(""));
    await gate.entered;
    const closed = server.close();
    await goaway;
    await expect(request(session, { ":path": "/probe/look" })).rejects.toThrow(/GOAWAY/);
    gate.leave();
    expect((await running).trailers["grpc-status"]).toBe("0");
    await closed;
  });

  it("announces to an HTTP/1.1 client that its connection ends with the answer", async () => {
    const gate = makeGate();
    const { server, port } = await serveProbe({ ask: gate.ask }, { maxDrainMs: 600_000 });
    const socket = connectTcp(port);
    const head = "POST /probe/ask HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    socket.write(`${head}content-length: 2\r\n\r\n{}`);
    const answer = readToEnd(socket);
    await gate.entered;
    const closed = server.close();
    // Until then, the next request of a pipeline may still be unread.
    await expect.poll(() => refusedConnection(`127.0.0.1:${port}`)).toBe("ECONNREFUSED");
    gate.leave();
    expect(await answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
    await closed;
  });

  it.each([
    ["its limit", { maxDrainMs: 100 }],
    ["a moment", { maxDrainMs: 600_000, maxWriteMs: 600_000 }],
  ])("ends after %s although HTTP/2 clients keep their half and a frame open", async (_when, limits) => {
    const { server, port } = await serveProbe({}, limits);
    const unfinished = [
      Buffer.alloc(0),
      writeFrame(frameTypes.headers, flags.endStream, 1, Buffer.alloc(100)).subarray(0, 20),
      writeFrame(frameTypes.headers, flags.endStream, 1, Buffer.from([0x82])),
    ];
    for (const bytes of unfinished) {
      const socket = connectTcp(port, true);
      socket.write(Buffer.concat([opening, bytes]));
      await once(socket, "data");
    }
    await server.close();
  });

  it.each(["closed", "destroyed"])("if %s, does not wait for a silent client", async (how) => {
    const { server, port } = await serveProbe({}, { maxHeaderMs: 600_000, maxDrainMs: 600_000 });
    const silent = connectTcp(port);
    await once(silent, "connect");
    // Connections are accepted in order: once this one is served, the server knows of the earlier one.
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
    const ended = readToEnd(silent);
    if (how === "destroyed") server.destroy();
    await Promise.all([server.close(), ended]);
  });

  it.each(protocols)("ends at once if destroyed, and notifies its clients, over %s", async (protocol) => {
    const gate = makeGate();
    const { server, url } = await serveProbe({ ask: gate.ask }, { maxDrainMs: 600_000 });
    const call = refusal(connectProbe(protocol, url).ask({}));
    await gate.entered;
    server.destroy();
    expect((await call).code).toMatch(/^(Unavailable|Canceled|Aborted|Internal)$/);
    await server.close();
  });

  it("lets a client stream finish", async () => {
    const { server, url } = await serveProbe({}, { maxDrainMs: 600_000 });
    const items = createOutgoing<{ text: string }>();
    const answers = connectProbe("gRPC", url).chat(items)[Symbol.asyncIterator]();
    items.send({ text: "one" });
    await answers.next();
    const closed = server.close();
    items.send({ text: "two" });
    expect((await answers.next()).value).toMatchObject({ text: "two" });
    items.end();
    expect((await answers.next()).done).toBe(true);
    await closed;
  });
});

/** A handler that reports when it is entered, and answers when released. */
function makeGate() {
  const entered = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const ask = async () => {
    entered.resolve();
    await left.promise;
    return { text: "left" };
  };
  return { entered: entered.promise, leave: () => left.resolve(), ask };
}

/** The error code with which a new connection fails. */
function refusedConnection(authority: string): Promise<string | undefined> {
  const socket = connectTcp(Number(authority.split(":").at(-1)));
  return once(socket, "connect").then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  );
}
