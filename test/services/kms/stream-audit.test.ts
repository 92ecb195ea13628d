/** Which refused calls have an audit log entry: those that reached the key lookup, in streams too. */
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { connectHttp2, envelope, readStream, request } from "../../server/raw.ts";
import { refusal } from "../../support/refusal.ts";
import { closeAndReadDeeds, createKey, describeKms, readDeeds } from "./kms-server.ts";
import { chunk, header, type SignPart, stalled } from "./sign-parts.ts";

const path = "/kms.KmsService/SignStream";
const one = chunk(new Uint8Array([1]));
const tooLong = new Uint8Array(256);

/** A protocol with binary messages, and one with JSON; test/server/refusals.test.ts refuses bodies of all protocols. */
const protocols = {
  gRPC: { type: "application/grpc", isJson: false },
  "Connect with JSON": { type: "application/connect+json", isJson: true },
} as const;

type Protocol = (typeof protocols)[keyof typeof protocols];

function frame({ isJson }: Protocol, part: SignPart): Buffer {
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
  [
    "bytes that are not a message",
    ({ isJson }) => envelope(isJson ? "{" : Buffer.of(0xff)),
    "(MESSAGE_MALFORMED|JSON_INVALID)",
  ],
  ["the announcement of 5 MiB", announceTooMuch, "BODY_TOO_LARGE"],
  ["half a message", () => envelope("half a message").subarray(0, 9), "BODY_INCOMPLETE"],
  ["a compressed message without an encoding", () => envelope("compressed", 1), "ENCODING_MISSING"],
  ["no chunk", () => Buffer.alloc(0), "FIELD_INVALID"],
];

/** Sends a stream over HTTP/2, and waits for its response. */
async function post(url: string, { type }: Protocol, ...frames: Buffer[]): Promise<void> {
  const session = connectHttp2(url);
  const head = { ":method": "POST", ":path": path, "content-type": type };
  await request(session, head, Buffer.concat(frames));
  session.destroy();
}

describeKms("the audit log", (start, shared) => {
  for (const [name, protocol] of Object.entries(protocols)) {
    it.each(endings)(
      `has an entry for a stream over ${name} whose header precedes %s`,
      async (_what, write, reason) => {
        const { kms, url } = await shared();
        const { keyId } = await createKey(kms);
        await post(url, protocol, frame(protocol, header(keyId)), write(protocol));
        const entry = expect.stringMatching(`^SIGN REFUSED reason=${reason}$`);
        expect((await readDeeds(kms, keyId)).slice(1)).toEqual([entry]);
      },
    );

    it(`has no entry for a stream over ${name} that does not begin with a valid header`, async () => {
      const { kms, url } = await shared();
      const { keyId } = await createKey(kms);
      const rest = frame(protocol, header(keyId));
      for (const part of [one, {}, header(keyId, tooLong)])
        await post(url, protocol, frame(protocol, part), rest);
      await post(url, protocol, envelope("{"), rest);
      expect(await readDeeds(kms, keyId)).toHaveLength(1);
    });
  }

  it("has no entry for an invalid request over gRPC and REST", async () => {
    const { kms, rest } = await shared();
    const { keyId } = await createKey(kms);
    await refusal(kms.sign({ keyId, data: tooLong, context: tooLong }));
    await rest("POST /api/kms/sign", {
      keyId,
      data: "AQ==",
      context: Buffer.from(tooLong).toString("base64"),
    });
    await rest("POST /api/kms/sign", { keyId: [keyId] });
    expect(await readDeeds(kms, keyId)).toHaveLength(1);
  });

  it("has an entry for a stream whose token expires while the server waits for a chunk", async () => {
    const { kms } = await start({ auth: "token" });
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.signStream(stalled(header(keyId), one)))).toEqual({
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
    const head = { ":method": "POST", ":path": path, "content-type": "application/grpc" };
    const stream = connectHttp2(url).request({ ...head, "grpc-timeout": "1000m" });
    stream.write(frame(protocols.gRPC, header(keyId)));
    await readStream(stream);
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });
});
