/** A stopping server: requests that it has not read yet, running calls, and streams that never end by themselves. */
import { once } from "node:events";
import type net from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { Drain, drain } from "#gen/qsp/drain_pb.ts";
import { type TunnelRequestSchema, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { readConfig } from "../../src/config.ts";
import { present } from "../services/answers.ts";
import { openConnections, serveApp } from "../services/app-under-test.ts";
import { bytesOf } from "../support/bytes.ts";
import { flags, frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { startServer } from "../support/start-server.ts";
import { createOutgoing } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { createFrameDecoder, encodeCall, type RawFrame } from "./frames.ts";
import { connectGrpc, connectProbe, headOf, type ProbeBehaviour, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, readToEnd, request } from "./raw.ts";
import { connectSession, serveTls, shakeHands } from "./tls-clients.ts";

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

const limits = { maxDrainMs: 600_000 };
const look = (text: string): string => `GET /probe/look?text=${text} HTTP/1.1\r\nhost: x\r\n\r\n`;
const answersIn = (text: string): string[] => text.split(/(?=HTTP\/1\.1 \d)/).filter(Boolean);

/** Serves with a connection on which one request has been answered. */
async function serveIdle() {
  const { server, port } = await serveProbe({}, limits);
  return { server, socket: await useOnce(connectTcp(port)) };
}

async function useOnce<Socket extends net.Socket>(socket: Socket): Promise<Socket> {
  socket.write(look("first"));
  await once(socket, "data");
  return socket;
}

describe("a stopping server, over HTTP/1.1,", () => {
  it.each([
    ["a request that waits on an idle connection", look("one"), "", [true]],
    ["a request in flight", "", look("one"), [true]],
    ["a request whose end arrives later", look("one").slice(0, 20), look("one").slice(20), [true]],
    ["a pipeline, partly in flight", look("one") + look("two"), look("three"), [false, false, false]],
  ])("answers %s, and then closes the connection", async (_what, early, late, areLast) => {
    const { server, socket } = await serveIdle();
    const answers = readToEnd(socket);
    socket.write(early);
    const closed = server.close();
    for (let turns = 0; turns < 20; turns += 1) await turn();
    socket.write(late);
    const all = answersIn(await answers);
    expect(all.map((answer) => /\r\nconnection: close\r\n/i.test(answer))).toEqual(areLast);
    for (const answer of all) expect(answer).toMatch(/^HTTP\/1\.1 200 .*"(one|two|three)"/s);
    await closed;
  });

  it("answers requests that follow a running one", async () => {
    const left = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const slow = async ({ text }: { readonly text: string }) => {
      entered.resolve();
      if (text === "slow") await left.promise;
      return { text };
    };
    const { server, port } = await serveProbe({ look: slow }, limits);
    const socket = connectTcp(port);
    const answers = readToEnd(socket);
    socket.write(look("slow"));
    await entered.promise;
    socket.write(look("quick"));
    const closed = server.close();
    await turn();
    left.resolve();
    expect(answersIn(await answers)).toHaveLength(2);
    await closed;
  });

  it("answers on connections that it has not accepted yet", async () => {
    const { server, port } = await serveProbe({}, limits);
    const sockets = Array.from({ length: 30 }, () => connectTcp(port));
    const answers = sockets.map(readToEnd);
    for (const socket of sockets) socket.write(look("hello"));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    const closed = server.close();
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 200 .*"hello"/s);
    await closed;
  });

  it("closes connections that stay idle", async () => {
    const { server, socket } = await serveIdle();
    const rest = readToEnd(socket);
    await server.close();
    expect(await rest).toBe("");
  });
});

const ask = (streamId: number): Buffer => encodeCall(streamId, "/probing.Probe/Ask", new Uint8Array());

/** A connection whose frames the test reads. It answers pings, like all clients. */
function connectRaw2(port: number) {
  const socket = connectTcp(port);
  const frames: RawFrame[] = [];
  const decode = createFrameDecoder();
  const closed = new Promise<readonly RawFrame[]>((resolve) => socket.on("close", () => resolve(frames)));
  socket.on("data", (bytes: Buffer) => {
    for (const one of decode(bytes)) {
      frames.push(one);
      if (one.type === frameTypes.ping && one.flags === 0)
        socket.write(writeFrame(frameTypes.ping, 1, 0, one.payload));
    }
  });
  socket.write(opening);
  return { socket, closed, frames };
}

const endedStreams = (frames: readonly RawFrame[]): number[] =>
  frames
    .filter((one) => one.type === frameTypes.headers && (one.flags & 1) === 1)
    .map(({ streamId }) => streamId);

describe("a stopping server, over HTTP/2,", () => {
  it("answers calls waiting on an idle connection, and then names the last one", async () => {
    const { server, port } = await serveProbe({}, limits);
    const { socket, closed, frames } = connectRaw2(port);
    socket.write(ask(1));
    await expect.poll(() => endedStreams(frames)).toEqual([1]);
    socket.write(Buffer.concat([ask(3), ask(5)]));
    const stopped = server.close();
    const all = await closed;
    expect(endedStreams(all)).toEqual([1, 3, 5]);
    const goaways = all.filter((one) => one.type === frameTypes.goaway);
    expect(new Set(goaways.map(({ payload }) => payload.readUInt32BE(0)))).toEqual(new Set([0x7fffffff, 5]));
    await stopped;
  });

  it("answers calls opened before its first GOAWAY arrived", async () => {
    const { server, port } = await serveProbe({}, limits);
    const { socket, closed, frames } = connectRaw2(port);
    await expect.poll(() => frames.length).toBeGreaterThan(0);
    const stopped = server.close();
    socket.write(ask(1));
    expect(endedStreams(await closed)).toEqual([1]);
    await stopped;
  });

  it("answers on connections that it has not accepted yet", async () => {
    const { server, port } = await serveProbe({}, limits);
    const connections = Array.from({ length: 20 }, () => connectRaw2(port));
    for (const { socket } of connections) socket.write(ask(1));
    await Promise.all(connections.map(({ socket }) => once(socket, "connect")));
    const stopped = server.close();
    for (const { closed } of connections) expect(endedStreams(await closed)).toEqual([1]);
    await stopped;
  });
});

describe("a stopping server, over TLS,", () => {
  it("answers a request waiting on an idle connection", async () => {
    const { server, ...place } = await serveTls({ limits });
    const socket = await useOnce(await shakeHands(place, { ALPNProtocols: ["http/1.1"] }));
    const answer = readToEnd(socket);
    socket.write(look("second"));
    const closed = server.close();
    expect(await answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*"second"/is);
    await closed;
  });

  it("answers running HTTP/2 calls, many at a time", async () => {
    const { server, ...place } = await serveTls({ limits });
    const session = await connectSession(place);
    const open = () => request(session, headOf("Ask"), envelope(""));
    await open();
    const calls = Array.from({ length: 100 }, open);
    await turn();
    const closed = server.close();
    for (const call of calls) expect((await call).trailers["grpc-status"]).toBe("0");
    await closed;
  });
});

async function startPackages() {
  const flags = ["--port", "0", "--max-drain-ms", String(3_600_000), "--services", "kms,vpn"];
  const app = await serveApp(readConfig([...flags, "--data-dir", makeTemporaryDirectory()], {}));
  const connections = openConnections(app.url);
  onTestFinished(async () => {
    connections.disconnect();
    app.server.destroy();
    await app.close();
  });
  return { ...app, ...connections };
}

describe("a stopping server", { timeout: 120_000 }, () => {
  it("ends a watch of the audit log, also over REST with the reason", async () => {
    const app = await startPackages();
    const kms = createClient(KmsService, app.grpc);
    await kms.createKey({});
    const entries = kms.watchAuditLog({ afterSequence: 0 })[Symbol.asyncIterator]();
    await entries.next();
    const ended = refusal(entries.next());
    const response = await fetch(`${app.url}/api/kms/audit/watch?afterSequence=0`);
    const chunks = present(response.body ?? undefined)[Symbol.asyncIterator]();
    await chunks.next();
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    const last = await chunks.next();
    const text = Buffer.from(last.value ?? new Uint8Array()).toString();
    for (const part of ['"retryDelay":"1s"', '"SHUTTING_DOWN"']) expect(text).toContain(part);
    await closed;
  });

  it("ends a tunnel after replying to the packets that it accepted", async () => {
    const app = await startPackages();
    const vpn = createClient(VpnService, app.grpc);
    const { tunnelId } = await vpn.registerPeer({});
    await vpn.handshake({ tunnelId });
    const packets = createOutgoing<MessageInitShape<typeof TunnelRequestSchema>>();
    const replies = vpn.tunnel(packets)[Symbol.asyncIterator]();
    packets.send({ packet: { case: "send", value: { tunnelId, data: bytesOf("hello") } } });
    expect((await replies.next()).value?.result?.case).toBe("sent");
    const ended = refusal(replies.next());
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    packets.end();
    await closed;
  });
});

it("knows for every stream that does not end by itself how to end it", async () => {
  const services = (await loadPackages()).flatMap(({ files }) => files.flatMap((file) => file.services));
  const streams = services
    .flatMap(({ methods }) => methods)
    .filter(({ methodKind }) => methodKind !== "unary");
  const namesOf = (kind: Drain): string[] =>
    streams.filter((method) => getOption(method, drain) === kind).map(({ name }) => name);
  const ownEnds = ["GetCbom", "SignStream", "UpdateFirmwareStream", "UploadTarget", "GetFile"];
  expect(namesOf(Drain.UNSPECIFIED).sort()).toEqual(ownEnds.sort());
  expect(namesOf(Drain.ANSWER).sort()).toEqual(["StreamTelemetry", "Tunnel"]);
});
