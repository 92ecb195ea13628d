import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { encodeGrpcMessage } from "../../src/server/grpc-status.ts";
import { ItemSchema } from "../gen/probing/probe_pb.ts";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { failureOf } from "../support/refusal.ts";
import { drain } from "../support/streams.ts";
import { connectProbe, headOf, type ProbeBehaviour, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, envelope, grpcStatusOf, request } from "./raw.ts";

describe("a text for grpc-message", () => {
  it.each([
    ["letters, spaces and signs of ASCII", `a: b, [c]; "d" 'e' <f>/?#=&+$@!~`, undefined],
    ["a percent sign", "100% of %3A", "100%25 of %253A"],
    ["line breaks, a tab and other controls", "a\r\nb\tc\0\x1f\x7f", "a%0D%0Ab%09c%00%1F%7F"],
    ["non-ASCII characters, as UTF-8", "ü€🔑", "%C3%BC%E2%82%AC%F0%9F%94%91"],
    ["half a surrogate pair", "a\ud83d", "a%EF%BF%BD"],
    ["spaces at the ends", "  a b  ", "%20 a b %20"],
    ["nothing", "", ""],
  ])("encodes no more than necessary: %s", (_what, text, encoded = text) => {
    expect(encodeGrpcMessage(text)).toBe(encoded);
  });
});

const text = ' tab\t, a line break\n, [ML-DSA-44]; 100% of %3A and %2C; a/b? #1 & c=d + "ü€🔑" and spaces ';

const atEnd = endAfterAll();
let url: string;
beforeAll(async () => {
  // Without details, because clients that find the status in these read its text from there.
  const fail = ({ text }: { text: string }): never => {
    throw new ConnectError(text, Code.InvalidArgument);
  };
  const behaviour: ProbeBehaviour = {
    ask: fail,
    // biome-ignore lint/correctness/useYield: it fails before any answer
    async *watch(item) {
      fail(item);
    },
    async *chat(items) {
      for await (const item of items) {
        yield item;
        fail(item);
      }
    },
  };
  ({ url } = await serveProbe(behaviour, {}, { atEnd }));
});

describe("the text of a refusal", () => {
  it.each(["Ask", "Watch", "Chat"])("reaches a client of @grpc/grpc-js, calling %s", async (method) => {
    const client = new Client(url.slice("http://".length), credentials.createInsecure());
    onTestFinished(() => client.close());
    const error = await new Promise<ServiceError>((resolve) => {
      const call = client.makeBidiStreamRequest(
        `/probing.Probe/${method}`,
        (item: string) => Buffer.from(toBinary(ItemSchema, create(ItemSchema, { text: item }))),
        (bytes) => fromBinary(ItemSchema, bytes),
      );
      call.on("data", () => {}).on("error", resolve);
      call.end(text);
    });
    expect([error.code, error.details]).toEqual([Code.InvalidArgument, text]);
  });

  it.each(protocols)("reaches a client of connect-node over %s", async (protocol) => {
    const client = connectProbe(protocol, url);
    expect((await failureOf(client.ask({ text }))).rawMessage).toBe(text);
    expect((await failureOf(drain(client.watch({ text })))).rawMessage).toBe(text);
  });

  it.skipIf(isMissing("grpcurl")).each(["Ask", "Watch"])("reaches grpcurl, calling %s", async (method) => {
    const { stderr } = await run(
      "grpcurl",
      ["-format-error", "-plaintext", "-d", "@", url.slice("http://".length), `probing.Probe/${method}`],
      JSON.stringify({ text }),
    );
    expect(JSON.parse(stderr.slice(stderr.indexOf("{"))).message).toBe(text);
  });
});

describe("JSON with half a surrogate pair, which the refusal quotes", () => {
  const bodies = ['{"text\\ud800":"a"}', '{"number":"\\ud800"}', '{"te\\ud800":"a","te\\ud800":"a"}'];
  it.each(bodies)("is refused with a status: %s", async (body) => {
    for (const type of ["application/grpc+json", "application/grpc-web+json"]) {
      for (const method of ["Ask", "Watch"]) {
        const answer = await request(connectHttp2(url), headOf(method, type), envelope(body));
        expect(grpcStatusOf(answer)).toEqual({ status: Code.InvalidArgument, reason: "FIELD_INVALID" });
      }
    }
  });
});
