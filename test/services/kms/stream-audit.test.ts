/** Which refused calls have an audit log entry: those that reached the key lookup, in streams too. */
import { create, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import { expect, it, onTestFinished } from "vitest";
import { SignRequestSchema, SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { connectHttp2, envelope, readStream, request } from "../../server/raw.ts";
import { refusal } from "../../support/refusal.ts";
import { closeAndReadDeeds, createKey, describeKms, readDeeds } from "./kms-server.ts";

type Part = MessageInitShape<typeof SignStreamRequestSchema>;

const path = { stream: "/kms.KmsService/SignStream", unary: "/kms.KmsService/Sign" };
const one = new Uint8Array([1]);
const tooLong = new Uint8Array(256);

const header = (keyId: string, context = new Uint8Array()): Part => ({
  part: { case: "header", value: { keyId, context } },
});
const chunk: Part = { part: { case: "chunk", value: one } };

/** Stream protocols. */
const protocols = {
  gRPC: { type: "application/grpc", isJson: false },
  "gRPC-Web": { type: "application/grpc-web+proto", isJson: false },
  Connect: { type: "application/connect+proto", isJson: false },
  "Connect with JSON": { type: "application/connect+json", isJson: true },
} as const;

type Protocol = (typeof protocols)[keyof typeof protocols];

function frame({ isJson }: Protocol, part: Part): Buffer {
  const message = create(SignStreamRequestSchema, part);
  const write = isJson ? toJsonString : toBinary;
  return envelope(write(SignStreamRequestSchema, message));
}

/** A prefix that announces more bytes than a message may have. */
function announceTooMuch(): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(5 * 1024 * 1024, 1);
  return prefix;
}

/** What a stream may contain after its header, and the reason for which it is refused. */
const endings: [what: string, write: (protocol: Protocol) => Buffer, reason: string][] = [
  ["a message without a part", (protocol) => frame(protocol, {}), "FIELD_INVALID"],
  ["a second header", (protocol) => frame(protocol, header("key-1")), "FIELD_INVALID"],
  ["a second header without a key", (protocol) => frame(protocol, header("")), "FIELD_INVALID"],
  [
    "a second header with a long context",
    (protocol) => frame(protocol, header("key-1", tooLong)),
    "FIELD_INVALID",
  ],
  [
    "bytes that are not a message",
    ({ isJson }) => envelope(isJson ? "{" : Buffer.of(0xff)),
    "(MESSAGE_MALFORMED|JSON_INVALID)",
  ],
  ["the announcement of 5 MiB", announceTooMuch, "BODY_TOO_LARGE"],
  ["half a message", () => envelope("half a message").subarray(0, 9), "BODY_INCOMPLETE"],
  ["a compressed message without an encoding", () => envelope("compressed", 1), "ENCODING_MISSING"],
  ["no message", () => Buffer.alloc(0), "FIELD_INVALID"],
];

/** Requests for one signature that are invalid in themselves. */
const invalidRequests: [
  what: string,
  path: string,
  type: string,
  body: (keyId: string) => string | Buffer,
][] = [
  ["gRPC", path.unary, "application/grpc", (keyId) => envelope(signRequest(keyId))],
  ["gRPC-Web", path.unary, "application/grpc-web+proto", (keyId) => envelope(signRequest(keyId))],
  ["Connect", path.unary, "application/proto", signRequest],
  ["Connect with JSON", path.unary, "application/json", signJson],
  ["REST", "/api/kms/sign", "application/json", signJson],
  [
    "REST with a field of the wrong type",
    "/api/kms/sign",
    "application/json",
    (keyId) => `{"keyId":["${keyId}"]}`,
  ],
];

function signRequest(keyId: string): Buffer {
  return Buffer.from(
    toBinary(SignRequestSchema, create(SignRequestSchema, { keyId, data: one, context: tooLong })),
  );
}

function signJson(keyId: string): string {
  return JSON.stringify({ keyId, data: "AQ==", context: Buffer.from(tooLong).toString("base64") });
}

/** Sends a request over HTTP/2, and waits for its response. */
async function post(url: string, path: string, type: string, body: Uint8Array | string): Promise<void> {
  const session = connectHttp2(url);
  await request(session, { ":method": "POST", ":path": path, "content-type": type }, body);
  session.destroy();
}

/** Sends parts, then stalls without ending until the test has finished. */
async function* stalled(...parts: Part[]): AsyncGenerator<Part> {
  yield* parts;
  await new Promise<void>((resolve) => onTestFinished(() => resolve()));
}

describeKms("the audit log", (start, shared) => {
  for (const [name, protocol] of Object.entries(protocols)) {
    it.each(endings)(
      `has an entry for a stream over ${name} whose header precedes %s`,
      async (_what, write, reason) => {
        const { kms, url } = await shared();
        const { keyId } = await createKey(kms);
        const body = Buffer.concat([frame(protocol, header(keyId)), write(protocol)]);
        await post(url, path.stream, protocol.type, body);
        const entry = expect.stringMatching(`^SIGN REFUSED reason=${reason}$`);
        expect((await readDeeds(kms, keyId)).slice(1)).toEqual([entry]);
      },
    );

    it(`has no entry for a stream over ${name} that does not begin with a valid header`, async () => {
      const { kms, url } = await shared();
      const { keyId } = await createKey(kms);
      const rest = frame(protocol, header(keyId));
      for (const part of [chunk, {}, header(keyId, tooLong)])
        await post(url, path.stream, protocol.type, Buffer.concat([frame(protocol, part), rest]));
      await post(url, path.stream, protocol.type, Buffer.concat([envelope("{"), rest]));
      expect(await readDeeds(kms, keyId)).toHaveLength(1);
    });
  }

  it.each(invalidRequests)("has no entry for an invalid request over %s", async (_what, path, type, body) => {
    const { kms, url } = await shared();
    const { keyId } = await createKey(kms);
    await post(url, path, type, body(keyId));
    expect(await readDeeds(kms, keyId)).toHaveLength(1);
  });

  it("has an entry for a stream whose token expires while the server waits for a chunk", async () => {
    const { kms } = await start({ auth: "token" });
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.signStream(stalled(header(keyId), chunk)))).toEqual({
      code: "Unauthenticated",
      reason: "TOKEN_EXPIRED",
    });
    await expect
      .poll(async () => (await readDeeds(kms, keyId)).slice(1))
      .toEqual(["SIGN REFUSED reason=TOKEN_EXPIRED"]);
  });

  it("has no entry for a stream whose deadline passes while the server waits for a chunk", async () => {
    const server = await start();
    const { kms, url } = server;
    const { keyId } = await createKey(kms);
    const head = { ":method": "POST", ":path": path.stream, "content-type": "application/grpc" };
    const stream = connectHttp2(url).request({ ...head, "grpc-timeout": "1000m" });
    stream.write(frame(protocols.gRPC, header(keyId)));
    await readStream(stream);
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });
});
