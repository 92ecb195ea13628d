/** HTTP/2 requests truncated before their end: no handler takes the received part for the whole. */
import { once } from "node:events";
import type net from "node:net";
import { setTimeout } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ItemSchema } from "../gen/probing/probe_pb.ts";
import { frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { ada, type ProbeBehaviour, serveAdmitting } from "./probe.ts";
import { connectTcp, envelope } from "./raw.ts";

/** What a handler saw: the texts of a whole request, or a truncated one. */
type Finding = readonly string[] | "cut";

/** Serves callers with a token. The check takes a moment, in which a request arrives and is truncated. */
async function serveSlowly() {
  const findings: Finding[] = [];
  let admitted = 0;
  const behaviour: ProbeBehaviour = {
    ask({ text }) {
      findings.push([text]);
      return {};
    },
    async collect(items) {
      const texts: string[] = [];
      try {
        for await (const { text } of items) texts.push(text);
        findings.push(texts);
      } catch (error) {
        findings.push("cut");
        throw error;
      }
      return {};
    },
  };
  const { port } = await serveAdmitting(behaviour, async () => {
    await setTimeout(5);
    admitted += 1;
    return ada;
  });
  return { port, findings, countAdmitted: () => admitted };
}

/** Opens a connection whose frames the test writes. */
async function connect(port: number): Promise<net.Socket> {
  const socket = connectTcp(port);
  await once(socket, "connect");
  socket.resume();
  socket.write(opening);
  return socket;
}

const message = toBinary(ItemSchema, create(ItemSchema, { text: "pay 1" }));
const json = Buffer.from('{"text":"pay 1"}');
const [ask, collect] = ["/probing.Probe/Ask", "/probing.Probe/Collect"];
const forms: [name: string, path: string, type: string, body: Buffer][] = [
  ["gRPC, a stream", collect, "application/grpc", envelope(message)],
  ["gRPC-Web, a stream", collect, "application/grpc-web+proto", envelope(message)],
  ["Connect, a stream", collect, "application/connect+proto", envelope(message)],
  ["gRPC, one message", ask, "application/grpc", envelope(message)],
  ["gRPC-Web, one message", ask, "application/grpc-web+proto", envelope(message)],
  ["Connect, one message", ask, "application/proto", Buffer.from(message)],
  ["Connect with JSON, one message", ask, "application/json", json],
  ["REST, one message", "/probe/ask", "application/json", json],
];

/** Truncates the first stream after some last bytes. */
type Cut = (socket: net.Socket, last: Uint8Array) => void;
const resetWith =
  (code: number): Cut =>
  (socket, last) =>
    void socket.write(Buffer.concat([last, writeFrame(frameTypes.rstStream, 0, 1, writeUint32(code))]));
const cuts: [name: string, cut: Cut][] = [
  ["RST_STREAM with NO_ERROR", resetWith(0)],
  ["RST_STREAM with INTERNAL_ERROR", resetWith(2)],
  ["RST_STREAM with CANCEL", resetWith(8)],
  ["the end of the connection", (socket, last) => void socket.end(last)],
];

describe.each(forms)("over %s", (_form, path, type, body) => {
  const build = (flag = 0, length?: string): Buffer => {
    const fields = { ":path": path, "content-type": type, authorization: "ada", "content-length": length };
    return Buffer.concat([encodeHead(1, fields), writeFrame(frameTypes.data, flag, 1, body)]);
  };

  /** Sends a whole request, and expects that it is the only one. The server has seen the earlier ones by then. */
  const expectOnlyNext = async (port: number, findings: readonly Finding[]): Promise<void> => {
    const whole = () => findings.filter((found) => found !== "cut");
    (await connect(port)).write(build(1, String(body.length)));
    await expect.poll(() => whole().length).toBeGreaterThan(0);
    await setTimeout(20);
    expect(whole()).toEqual([["pay 1"]]);
  };

  it("a request with END_STREAM is incomplete if it announced more bytes", async () => {
    const { port, findings } = await serveSlowly();
    (await connect(port)).write(build(1, String(body.length + 8)));
    await expectOnlyNext(port, findings);
  });

  it.each(cuts)("a request cut off by %s is incomplete", async (_cut, cut) => {
    const { port, findings } = await serveSlowly();
    for (const pauseMs of [0, 0, 0, 1, 2]) {
      const socket = await connect(port);
      await setTimeout(pauseMs);
      cut(socket, build());
    }
    await expectOnlyNext(port, findings);
  });

  it.each(cuts)("a request that waits for its end until %s is incomplete", async (_, cut) => {
    const { port, findings, countAdmitted } = await serveSlowly();
    const socket = await connect(port);
    socket.write(build());
    await expect.poll(countAdmitted).toBe(1);
    // The server has read what arrived.
    await setTimeout(20);
    cut(socket, new Uint8Array());
    await expectOnlyNext(port, findings);
  });
});
