/** HTTP/2 requests truncated before their end: no handler takes the received part for the whole. */
import { once } from "node:events";
import type net from "node:net";
import { setTimeout } from "node:timers/promises";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { KmsService, SignRequestSchema, SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { connectTcp, envelope } from "./raw.ts";
import { serve } from "./serve.ts";

const codes = { NO_ERROR: 0, INTERNAL_ERROR: 2, CANCEL: 8 } as const;

/** What a handler saw: the texts of a whole request, or a truncated one. */
type Finding = readonly string[] | "cut";

/** Handlers that record what they see. */
function observe() {
  const findings: Finding[] = [];
  const implementation = {
    sign({ data }) {
      findings.push([new TextDecoder().decode(data)]);
      return {};
    },
    async signStream(parts) {
      const texts: string[] = [];
      try {
        for await (const { part } of parts)
          if (part.case === "chunk") texts.push(new TextDecoder().decode(part.value));
        findings.push(texts);
      } catch (error) {
        findings.push("cut");
        throw error;
      }
      return {};
    },
  } satisfies Partial<ServiceImpl<typeof KmsService>>;
  return { findings, implementation };
}

/** Serves callers with a token. The check takes a moment, in which a request arrives and is truncated. */
async function serveSlowly(
  implementation: Partial<ServiceImpl<typeof KmsService>>,
): Promise<{ readonly port: number; countAdmitted(): number }> {
  let admitted = 0;
  const { port } = await serve({
    services: [createServiceImplSpec<typeof KmsService>(KmsService, implementation)],
    access: {
      mode: "token",
      authenticate: async () => {
        await setTimeout(5);
        admitted += 1;
        return { role: "user", subject: "ada", issuedAt: new Date(0), expiresAt: new Date(0) };
      },
    },
  });
  return { port, countAdmitted: () => admitted };
}

/** Opens a connection whose frames the test writes. */
async function connect(port: number): Promise<net.Socket> {
  const socket = connectTcp(port);
  await once(socket, "connect");
  socket.resume();
  socket.write(opening);
  return socket;
}

const part = (value: NonNullable<MessageInitShape<typeof SignStreamRequestSchema>["part"]>) =>
  envelope(toBinary(SignStreamRequestSchema, create(SignStreamRequestSchema, { part: value })));
const parts = Buffer.concat([
  part({ case: "header", value: { keyId: "key" } }),
  part({ case: "chunk", value: Buffer.from("pay 1") }),
]);
const message = toBinary(
  SignRequestSchema,
  create(SignRequestSchema, { keyId: "key", data: Buffer.from("pay 1") }),
);
const json = Buffer.from('{"keyId":"key","data":"cGF5IDE="}');
const [sign, stream] = ["/kms.KmsService/Sign", "/kms.KmsService/SignStream"];

/** Request forms. */
const forms = {
  "gRPC, a stream": { path: stream, type: "application/grpc", body: parts },
  "gRPC-Web, a stream": { path: stream, type: "application/grpc-web+proto", body: parts },
  "Connect, a stream": { path: stream, type: "application/connect+proto", body: parts },
  "gRPC, one message": { path: sign, type: "application/grpc", body: envelope(message) },
  "gRPC-Web, one message": { path: sign, type: "application/grpc-web+proto", body: envelope(message) },
  "Connect, one message": { path: sign, type: "application/proto", body: Buffer.from(message) },
  "Connect with JSON, one message": { path: sign, type: "application/json", body: json },
  "REST, one message": { path: "/api/kms/sign", type: "application/json", body: json },
} as const;

/** Ways to truncate the first stream after some last bytes. */
const cuts: Record<string, (socket: net.Socket, last: Uint8Array) => void> = {};
for (const [name, code] of Object.entries(codes))
  cuts[`RST_STREAM with ${name}`] = (socket, last) =>
    void socket.write(Buffer.concat([last, writeFrame(frameTypes.rstStream, 0, 1, writeUint32(code))]));
cuts["the end of the connection"] = (socket, last) => void socket.end(last);

describe.each(Object.entries(forms))("over %s", (_form, { path, type, body }) => {
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
    expect(whole()).toHaveLength(1);
  };

  it("a request with END_STREAM is complete", async () => {
    const { findings, implementation } = observe();
    const { port } = await serveSlowly(implementation);
    (await connect(port)).write(build(1));
    await expect.poll(() => findings).toHaveLength(1);
    expect(findings[0]).toEqual(["pay 1"]);
  });

  it("a request with END_STREAM is incomplete if it announced more bytes", async () => {
    const { findings, implementation } = observe();
    const { port } = await serveSlowly(implementation);
    (await connect(port)).write(build(1, String(body.length + 8)));
    await expectOnlyNext(port, findings);
  });

  it.each(Object.entries(cuts))("a request cut off by %s is incomplete", async (_cut, cut) => {
    const { findings, implementation } = observe();
    const { port } = await serveSlowly(implementation);
    for (const pauseMs of [0, 0, 0, 1, 2]) {
      const socket = await connect(port);
      await setTimeout(pauseMs);
      cut(socket, build());
    }
    await expectOnlyNext(port, findings);
  });

  it.each(Object.entries(cuts))(
    "a request that is waiting for its end until %s cuts it off is incomplete",
    async (_cut, cut) => {
      const { findings, implementation } = observe();
      const { port, countAdmitted } = await serveSlowly(implementation);
      const socket = await connect(port);
      socket.write(build());
      await expect.poll(countAdmitted).toBe(1);
      // The server has read what arrived.
      await setTimeout(20);
      cut(socket, new Uint8Array());
      await expectOnlyNext(port, findings);
    },
  );
});
