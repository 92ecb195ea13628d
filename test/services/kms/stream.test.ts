/** SignStream, and which refused streams have an audit log entry: those that reached the key lookup. */
import { randomFillSync } from "node:crypto";
import { constants } from "node:http2";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { connectHttp2, envelope, readStream, request } from "../../server/raw.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses } from "../../support/refusals.ts";
import { streamOf } from "../../support/streams.ts";
import { present } from "../answers.ts";
import {
  closeAndReadDeeds,
  createKey,
  describeKms,
  readDeeds,
  verifiesOutside,
  withKey,
} from "./kms-server.ts";
import { chunk, header, type SignPart, stalled } from "./sign-parts.ts";

const mebibyte = 1024 * 1024;
const data = chunk(bytesOf("data"));
const head = { ":method": "POST", ":path": "/kms.KmsService/SignStream" };

/** Cuts a message into chunks of these sizes, which repeat. */
function cut(message: Uint8Array<ArrayBuffer>, sizes: readonly number[]): SignPart[] {
  const parts: SignPart[] = [];
  for (let at = 0, i = 0; at < message.length; i += 1) {
    const size = sizes[i % sizes.length] ?? 0;
    parts.push(chunk(message.subarray(at, at + size)));
    at += size;
  }
  return parts;
}

/** Streams that are refused, the invalid field, and whether the refusal is recorded. */
const badStreams: [what: string, parts: (keyId: string) => SignPart[], field: string, recorded?: "yes"][] = [
  ["nothing at all", () => [], "header"],
  ["no header", (keyId) => [data, header(keyId)], "header"],
  ["a message without a part first", (keyId) => [{}, header(keyId)], "part"],
  ["two headers", (keyId) => [header(keyId), data, header(keyId), data], "header", "yes"],
  ["a header alone", (keyId) => [header(keyId)], "chunk", "yes"],
  ["only empty chunks", (keyId) => [header(keyId), chunk(bytesOf("")), chunk(bytesOf(""))], "chunk", "yes"],
  ["a message without a part", (keyId) => [header(keyId), {}], "part", "yes"],
  ["a header without a keyId", () => [header(""), data], "header.keyId"],
  ["a context of 256 bytes", (keyId) => [header(keyId, new Uint8Array(256)), data], "header.context"],
];

describeKms("KmsService.SignStream", (start, shared) => {
  it.each([
    ["without a context", new Uint8Array()],
    ["with a context of 255 bytes", new Uint8Array(255).fill(3)],
  ])("signs 16 MiB %s", async (_what, binding) => {
    const { kms, key } = await withKey(shared());
    const message = randomFillSync(new Uint8Array(16 * mebibyte));
    const parts = [header(key.keyId, binding), ...cut(message, [mebibyte, 0, 100, 3 * mebibyte])];
    const { result } = await kms.signStream(streamOf(...parts));
    expect(result).toMatchObject({ keyId: key.keyId, algorithm: "ML-DSA-44" });
    const { signature } = present(result);
    expect(verifiesOutside(key, message, signature, binding)).toBe(true);
    expect(verifiesOutside(key, message, signature, bytesOf("another"))).toBe(false);
    expect((await readDeeds(kms, key.keyId)).slice(1)).toEqual([
      `SIGN OK input=stream, bytes=${16 * mebibyte}`,
    ]);
  });

  it.each(badStreams)("rejects %s", async (_what, parts, field, recorded) => {
    const { kms, keyId } = await withKey(shared());
    expect(await refusal(kms.signStream(streamOf(...parts(keyId))))).toEqual(invalid(field));
    const entries = recorded ? ["SIGN REFUSED reason=FIELD_INVALID"] : [];
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(entries);
  });

  it("signs and records nothing for a cancelled stream", async () => {
    const server = await withKey(start());
    const { kms, keyId } = server;
    const controller = new AbortController();
    async function* parts(): AsyncGenerator<SignPart> {
      yield header(keyId);
      yield data;
      controller.abort();
      yield data;
    }
    await refusal(kms.signStream(parts(), { signal: controller.signal }));
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });

  it("signs nothing for a stream that ends and is cancelled at the same time, as Node clients do", async () => {
    const server = await withKey(start());
    const { url, keyId } = server;
    const session = connectHttp2(url);
    const call = session.request({ ...head, "content-type": gRpc.type });
    call.on("error", () => {});
    call.write(frame(gRpc, header(keyId)));
    await new Promise((resolve) => call.write(frame(gRpc, data), resolve));
    call.end();
    call.close(constants.NGHTTP2_CANCEL);
    await new Promise((resolve) => call.once("close", resolve));
    // Once the server answers later frames on the connection, it has read the cancellation.
    await new Promise((resolve) => session.ping(resolve));
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });

  it("rejects an SLH-DSA key on the header message", async () => {
    const { kms, keyId } = await withKey(shared(), { algorithm: "SLH-DSA-SHA2-128f" });
    expect(await refusal(kms.signStream(stalled(header(keyId))))).toEqual(usageRefuses);
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=KEY_USAGE_MISMATCH"]);
  });

  it.each(["rotateKey", "destroyKey"] as const)(
    "fails at the end if another caller manages to call %s in the meantime",
    async (change) => {
      const { kms, keyId } = await withKey(shared());
      await kms.sign({ keyId, data: bytesOf("so that it is in use") });
      async function* parts(): AsyncGenerator<SignPart> {
        yield header(keyId);
        yield data;
        await kms[change]({ keyId });
        yield data;
      }
      expect(await refusal(kms.signStream(parts()))).toEqual(stateRefuses);
      expect((await readDeeds(kms, keyId)).at(-1)).toBe("SIGN REFUSED reason=KEY_STATE_INVALID");
    },
  );
});

/** A protocol with binary messages, and one with JSON; test/server/refusals.test.ts refuses bodies of all protocols. */
const protocols = {
  gRPC: { type: "application/grpc", isJson: false },
  "Connect with JSON": { type: "application/connect+json", isJson: true },
} as const;
const gRpc = protocols.gRPC;

type Protocol = (typeof protocols)[keyof typeof protocols];

function frame({ isJson }: Protocol, part: SignPart): Buffer {
  const message = create(SignStreamRequestSchema, part);
  const write = isJson ? toJsonString : toBinary;
  return envelope(write(SignStreamRequestSchema, message));
}

/** A prefix that announces more bytes than a message may have. */
const tooMuch = Buffer.from([0, 0, 80, 0, 0]);
/** Bytes that may follow a header, and the reason for which the stream is refused. */
const endings: [what: string, write: (protocol: Protocol) => Buffer, reason: string][] = [
  [
    "no message",
    ({ isJson }) => envelope(isJson ? "{" : Buffer.of(0xff)),
    "(MESSAGE_MALFORMED|JSON_INVALID)",
  ],
  ["the announcement of 5 MiB", () => tooMuch, "BODY_TOO_LARGE"],
  ["half a message", () => envelope("half a message").subarray(0, 9), "BODY_INCOMPLETE"],
  ["a compressed message without an encoding", () => envelope("compressed", 1), "ENCODING_MISSING"],
];

describeKms("the audit log", (start, shared) => {
  describe.each(Object.entries(protocols))("over %s", (_name, protocol) => {
    /** Sends a stream over HTTP/2, waits for its response, and reads the entries of the key. */
    async function post(...makeFrames: ((keyId: string) => Buffer)[]): Promise<string[]> {
      const { kms, url, keyId } = await withKey(shared());
      const frames = makeFrames.map((makeFrame) => makeFrame(keyId));
      await request(connectHttp2(url), { ...head, "content-type": protocol.type }, Buffer.concat(frames));
      return (await readDeeds(kms, keyId)).slice(1);
    }
    const begin = (keyId: string) => frame(protocol, header(keyId));

    it.each(endings)("has an entry for a stream whose header precedes %s", async (_what, write, reason) => {
      const entries = await post(begin, () => write(protocol));
      expect(entries).toEqual([expect.stringMatching(`^SIGN REFUSED reason=${reason}$`)]);
    });

    it("has no entry for a stream that does not begin with a header", async () => {
      expect(await post(() => envelope("{"), begin)).toEqual([]);
    });
  });

  it("has an entry for a stream whose token expires while the server waits for a chunk", async () => {
    const { kms, keyId } = await withKey(start({ auth: "token" }));
    expect(await refusal(kms.signStream(stalled(header(keyId), data)))).toMatchObject({
      reason: "TOKEN_EXPIRED",
    });
    await expect
      .poll(async () => (await readDeeds(kms, keyId)).slice(1))
      .toEqual(["SIGN REFUSED reason=TOKEN_EXPIRED"]);
  });

  it("has no entry for a stream whose deadline passes while the server waits for a chunk", async () => {
    const server = await start();
    const { keyId } = await createKey(server.kms);
    const headers = { ...head, "content-type": gRpc.type, "grpc-timeout": "1000m" };
    const stream = connectHttp2(server.url).request(headers);
    stream.write(frame(gRpc, header(keyId)));
    await readStream(stream);
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });
});
