import { once } from "node:events";
import type http2 from "node:http2";
import net from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflectionRequestSchema } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { SignDataRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { flags, frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { describeRefusal, refusal } from "../support/refusal.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { createOutgoing } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { connectProbe, headOf, type ProbeBehaviour, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, readStream, readToEnd, request } from "./raw.ts";

const post =
  "POST /probe/ask HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}";
const serving = 1;
const notServing = 2;

describe("the program, when stopped,", { timeout: 120_000 }, () => {
  it("logs it, lets running calls finish, accepts no new ones, and exits with 0", {
    timeout: 120_000,
  }, async () => {
    const server = await start();
    const session = connectHttp2(server.url);
    const goaway = once(session, "goaway");
    const otherGoaway = once(await openSession(server.url), "goaway");
    // Takes about a second.
    const signature = readStream(openSigning(session));
    const conversation = await openReflection(session);
    const watch = await openWatch(session);

    server.process.kill("SIGTERM");
    const [code] = await goaway;
    expect(code).toBe(0);
    await otherGoaway;
    expect(await watch.next()).toBe(notServing);
    expect(await watch.next()).toBeUndefined();
    expect(await refusedConnection(server.authority)).toBe("ECONNREFUSED");

    expect(await conversation.ask()).toBeGreaterThan(0);
    conversation.end();
    expect((await conversation.answer).trailers["grpc-status"]).toBe("0");
    const { status, trailers, body } = await signature;
    expect([status, trailers["grpc-status"]]).toEqual([200, "0"]);
    expect(body.length).toBeGreaterThan(16_224);
    expect(await server.exit).toMatchObject({ code: 0, signal: null });
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "by %s exits with 0 although connections are idle",
    async (signal) => {
      const server = await start();
      const idle = connectTcp(portOf(server));
      idle.write("GET /api/hello HTTP/1.1\r\nhost: x\r\n\r\n");
      await once(idle, "data");
      const closed = readToEnd(idle);
      const watch = await openWatch(await openSession(server.url));
      const rest = Promise.all([watch.next(), watch.next()]);
      expect(await server.stop(signal)).toMatchObject({ code: 0, signal: null });
      await closed;
      expect(await rest).toEqual([notServing, undefined]);
    },
  );

  it("twice, ends at once", async () => {
    const server = await start();
    const session = await openSession(server.url);
    const goaway = once(session, "goaway");
    await openReflection(session);
    server.process.kill("SIGTERM");
    await goaway;
    const { code } = await server.stop("SIGTERM");
    expect(code).toBe(1);
  });

  it("aborts whatever exceeds the limit, and exits with 0", async () => {
    const server = await start("--max-drain-ms", "100");
    const session = await openSession(server.url);
    const conversation = await openReflection(session);
    expect(await server.stop()).toMatchObject({ code: 0, signal: null });
    expect((await conversation.answer).trailers["grpc-status"]).toBe("14");
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
    const readLast = async (): Promise<string> => {
      let last = "";
      for await (const { text } of client.watch({})) last = text;
      return last;
    };
    const text = kind === "call" ? client.ask({}).then((answer) => answer.text) : readLast();
    const outcome = text.catch((error: unknown) => ConnectError.from(error));
    await gate.entered;
    return { outcome, leave: gate.leave, server };
  }

  it.each(["call", "stream"])("lets a %s finish", async (kind) => {
    const { outcome, leave, server } = await begin(kind, 600_000);
    const closed = server.close();
    leave();
    expect(await outcome).toBe("left");
    await closed;
  });

  it.each(["call", "stream"])("aborts a %s that exceeds the limit, and says when to retry", async (kind) => {
    const { outcome, server } = await begin(kind, 20);
    const closed = server.close();
    const error = await outcome;
    if (!(error instanceof ConnectError)) throw new Error(`the ${kind} has ended`);
    expect(describeRefusal(error)).toEqual({ code: "Unavailable", reason: "SHUTTING_DOWN" });
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
    socket.write(post);
    const answer = readToEnd(socket);
    await gate.entered;
    const closed = server.close();
    // Until then, the next request of a pipeline may still be unread.
    await expect.poll(() => refusedConnection(`127.0.0.1:${port}`)).toBe("ECONNREFUSED");
    gate.leave();
    expect(await answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
    await closed;
  });

  it.each(["closed", "destroyed"])(
    "if %s, does not wait for a client that has sent nothing yet",
    async (how) => {
      const { server, port } = await serveProbe({}, { maxHeaderMs: 600_000, maxDrainMs: 600_000 });
      const silent = connectTcp(port);
      await once(silent, "connect");
      // Connections are accepted in order: once this one is served, the server knows of the earlier one.
      expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
      const ended = readToEnd(silent);
      if (how === "destroyed") server.destroy();
      await server.close();
      await ended;
    },
  );

  it.each([
    ["its limit", { maxDrainMs: 100 }],
    ["a moment", { maxDrainMs: 600_000, maxWriteMs: 600_000 }],
  ])(
    "ends after %s although HTTP/2 clients leave their half of the connection open, and a frame or head unfinished",
    async (_when, limits) => {
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
    },
  );

  it("can be stopped twice", async () => {
    const { server } = await serveProbe();
    await Promise.all([server.close(), server.close()]);
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

async function start(...args: string[]): Promise<RunningServer> {
  const server = await startServer({ dataDir: makeTemporaryDirectory(), args });
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  return server;
}

function portOf({ authority }: RunningServer): number {
  return Number(authority.split(":").at(-1));
}

async function openSession(url: string): Promise<http2.ClientHttp2Session> {
  const session = connectHttp2(url);
  await once(session, "remoteSettings");
  return session;
}

function openCall(session: http2.ClientHttp2Session, path: string): http2.ClientHttp2Stream {
  return session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
}

function openSigning(session: http2.ClientHttp2Session): http2.ClientHttp2Stream {
  const stream = openCall(session, "/pqc.PqcService/SignData");
  stream.end(encode(SignDataRequestSchema, { data: Buffer.from("hello"), algorithm: "SLH-DSA-SHAKE-192s" }));
  return stream;
}

/** Watches the server's health, and has received that it is serving. */
async function openWatch(session: http2.ClientHttp2Session) {
  const stream = openCall(session, "/grpc.health.v1.Health/Watch");
  stream.end(encode(HealthCheckRequestSchema, {}));
  const chunks = stream[Symbol.asyncIterator]();
  const next = async (): Promise<number | undefined> => {
    const chunk = await chunks.next();
    return chunk.done ? undefined : fromBinary(HealthCheckResponseSchema, chunk.value.subarray(5)).status;
  };
  expect(await next()).toBe(serving);
  return { next };
}

/** Opens a bidirectional stream on which one request has been answered. */
async function openReflection(session: http2.ClientHttp2Session) {
  const stream = openCall(session, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
  const answer = readStream(stream);
  const ask = async (): Promise<number> => {
    const chunk = once(stream, "data");
    const messageRequest = { case: "listServices", value: "" } as const;
    stream.write(encode(ServerReflectionRequestSchema, { messageRequest }));
    return (await chunk)[0].length;
  };
  await ask();
  return { ask, answer, end: () => void stream.end() };
}

function encode<
  Desc extends
    | typeof HealthCheckRequestSchema
    | typeof ServerReflectionRequestSchema
    | typeof SignDataRequestSchema,
>(desc: Desc, init: MessageInitShape<Desc>): Buffer {
  return envelope(toBinary(desc, create(desc, init) as never));
}

/** The error code with which a new connection fails; undefined if it does not. */
function refusedConnection(authority: string): Promise<string | undefined> {
  const [host, port] = authority.split(":");
  const socket = net.connect(Number(port), host);
  return new Promise((resolve) => {
    socket.on("connect", () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code));
  });
}
