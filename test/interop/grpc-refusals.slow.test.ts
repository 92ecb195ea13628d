import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServerLimits } from "../../src/server/limits.ts";
import { ItemSchema } from "../gen/probing/probe_pb.ts";
import { afterOneMessage, always, crash, hang, refuseAtLength, refuseText } from "../server/failing.ts";
import { type ProbeBehaviour, serveProbe } from "../server/probe.ts";
import { findPython } from "./python.ts";
import {
  type RawCall,
  type RawClient,
  type RawOutcome,
  startGoClient,
  startPythonClient,
} from "./raw-client.ts";
import { isMissing } from "./tools.ts";

/** A refused call: the server's behaviour, the request, and what the client library must report. */
interface Refused {
  readonly behaviour?: ProbeBehaviour;
  readonly limits?: Partial<ServerLimits>;
  readonly call?: Partial<RawCall>;
  readonly expected: Partial<RawOutcome>;
}

const large = toBinary(ItemSchema, create(ItemSchema, { text: "a".repeat(2000) }));

const notFound = { code: Code.Unimplemented, reason: "RPC_NOT_FOUND" };
const nothing = "/probing.Probe/Nothing";
const exhausted = (reason: string) => ({ code: Code.ResourceExhausted, reason });
const invalid = (reason: string) => ({ code: Code.InvalidArgument, reason });
const short = { maxMessageBytes: 1000 };

const refusals: Record<string, Refused> = {
  "an unknown RPC": {
    call: { path: nothing },
    expected: { ...notFound, message: `the RPC ${nothing} does not exist`, metadata: { path: nothing } },
  },
  "a path of 10,000 characters": {
    call: { path: `/probing.Probe/${"N".repeat(10_000)}` },
    expected: notFound,
  },
  "metadata above the limit": {
    call: { headers: { "x-large": "x".repeat(20_000) } },
    expected: exhausted("METADATA_TOO_LARGE"),
  },
  "a message above the limit": {
    limits: short,
    call: { message: large },
    expected: { ...exhausted("BODY_TOO_LARGE"), metadata: { maxBytes: "1000" } },
  },
  "a compressed message above the limit": {
    limits: short,
    call: { message: large, gzip: true },
    expected: exhausted("BODY_TOO_LARGE"),
  },
  "bytes that are not a message": {
    call: { message: Uint8Array.of(0x0a, 0x05, 0x61) },
    expected: invalid("MESSAGE_MALFORMED"),
  },
  "a handler that refuses": {
    behaviour: always(refuseText),
    expected: {
      ...{ ...invalid("KEY_INVALID"), message: "text: is no key, see 100%" },
      ...{ metadata: { field: "text" }, fields: ["text"] },
    },
  },
  "a refusal larger than clients accept": {
    behaviour: always(refuseAtLength),
    expected: invalid("FIELD_INVALID"),
  },
  "a handler that throws": {
    behaviour: always(crash),
    expected: { code: Code.Internal, reason: "INTERNAL", message: "internal error" },
  },
  "a full server": {
    limits: { maxCalls: 0, maxStreams: 0 },
    expected: { ...exhausted("SERVER_BUSY"), retryAfter: "1s" },
  },
};

type Method = readonly [name: string, kind: Pick<RawCall, "clientStreaming" | "serverStreaming">];

const methods: readonly Method[] = [
  ["Ask", { clientStreaming: false, serverStreaming: false }],
  ["Watch", { clientStreaming: false, serverStreaming: true }],
  ["Collect", { clientStreaming: true, serverStreaming: false }],
  ["Chat", { clientStreaming: true, serverStreaming: true }],
];
const serverStreams = methods.filter(([, { serverStreaming }]) => serverStreaming);

const python = findPython("grpc_status");
describe.each([
  ["grpc-go", isMissing("go"), startGoClient],
  ["grpcio", python === undefined, () => startPythonClient(python ?? "")],
] as const)("a client of %s", { timeout: 120_000 }, (_library, isAbsent, startClient) => {
  describe.skipIf(isAbsent)("receives refusals", () => {
    let client: RawClient;
    beforeAll(() => {
      client = startClient();
    }, 300_000);
    afterAll(() => client.end());
    const send = (port: number, [name, kind]: Method, call: Partial<RawCall> = {}) =>
      client.call({ authority: `127.0.0.1:${port}`, path: `/probing.Probe/${name}`, ...kind, ...call });

    describe.each(Object.entries(refusals))("for %s", (_name, { behaviour, limits, call, expected }) => {
      it.each(methods)("with the reason, calling %s", async (...method) => {
        const { port } = await serveProbe(behaviour, limits);
        expect(await send(port, method, call)).toMatchObject({
          messages: 0,
          domain: "quantum-safe-playground",
          ...expected,
        });
      });
    });

    it.each(methods)("above its rate, with the delay until a retry, calling %s", async (...method) => {
      const { port } = await serveProbe({}, { maxCallsPerSecond: 0.01 });
      await send(port, method);
      expect(await send(port, method)).toMatchObject({
        code: Code.ResourceExhausted,
        reason: "RATE_LIMITED",
        retryAfter: expect.stringMatching(/\ds$/),
      });
    });

    it.each(serverStreams)("after the first message, with the reason, calling %s", async (...method) => {
      const { port } = await serveProbe(afterOneMessage);
      expect(await send(port, method)).toMatchObject({
        messages: 1,
        code: Code.InvalidArgument,
        reason: "KEY_INVALID",
        fields: ["text"],
      });
    });

    it.each(methods)("with SHUTTING_DOWN when the server stops, calling %s", async (...method) => {
      const entered = Promise.withResolvers<void>();
      const enter = () => {
        entered.resolve();
        return hang();
      };
      const { server, port } = await serveProbe(always(enter), { maxDrainMs: 20 });
      const outcome = send(port, method);
      await entered.promise;
      const closed = server.close();
      expect(await outcome).toMatchObject({ code: Code.Unavailable, reason: "SHUTTING_DOWN" });
      await closed;
    });

    it("and makes its next call on the same connection", async () => {
      const { port } = await serveProbe();
      for (const method of methods) {
        expect(await send(port, method, { path: nothing })).toMatchObject({ code: 12 });
        expect(await send(port, method)).toMatchObject({ code: 0, messages: 1 });
      }
    });
  });
});
