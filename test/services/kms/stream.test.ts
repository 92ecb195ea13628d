import { randomFillSync } from "node:crypto";
import http2 from "node:http2";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { expect, it, onTestFinished } from "vitest";
import { SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import {
  closeAndReadDeeds,
  createKey,
  describeKms,
  type KmsClient,
  readDeeds,
  verifiesOutside,
} from "./kms-server.ts";

type Part = MessageInitShape<typeof SignStreamRequestSchema>;

const mebibyte = 1024 * 1024;

const header = (keyId: string, binding = new Uint8Array()): Part => ({
  part: { case: "header", value: { keyId, context: binding } },
});
const chunk = (value: Uint8Array<ArrayBuffer>): Part => ({ part: { case: "chunk", value } });

async function* partsOf(...parts: Part[]): AsyncGenerator<Part> {
  yield* parts;
}

/** Sends parts, then stalls without ending until the test has finished. */
async function* stalled(...parts: Part[]): AsyncGenerator<Part> {
  yield* parts;
  await new Promise<void>((resolve) => onTestFinished(() => resolve()));
}

/** Frames a message as gRPC does: uncompressed, its length, the message. */
function frame(part: Part): Buffer {
  const message = toBinary(SignStreamRequestSchema, create(SignStreamRequestSchema, part));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Cuts a message into chunks of these sizes, which repeat. */
function cut(message: Uint8Array<ArrayBuffer>, sizes: readonly number[]): Part[] {
  const parts: Part[] = [];
  for (let at = 0, i = 0; at < message.length; i += 1) {
    const size = sizes[i % sizes.length] ?? 0;
    parts.push(chunk(message.subarray(at, at + size)));
    at += size;
  }
  return parts;
}

async function signParts(kms: KmsClient, ...parts: Part[]): Promise<Uint8Array> {
  return present((await kms.signStream(partsOf(...parts))).result).signature;
}

describeKms("KmsService.SignStream", (start, shared) => {
  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"])(
    "returns the plain signature over all bytes together, with a %s key",
    async (algorithm) => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      const message = randomFillSync(new Uint8Array(10_000));
      const parts = partsOf(header(key.keyId), ...cut(message, [1000]));
      const { status, result } = await kms.signStream(parts);
      expect(status).toBe("success");
      expect(result).toMatchObject({ keyId: key.keyId, algorithm });
      expect(verifiesOutside(key, message, present(result).signature)).toBe(true);
    },
  );

  it.each([
    ["1 byte", [1]],
    ["0 to 4096 bytes", [0, 1, 135, 136, 137, 0, 0, 4096]],
    ["all its bytes", [9999]],
  ])("signs a message in chunks of %s", async (_what, sizes) => {
    const { kms } = await shared();
    const key = await createKey(kms);
    const message = randomFillSync(new Uint8Array(2000));
    const signature = await signParts(kms, header(key.keyId), ...cut(message, sizes), chunk(bytesOf("")));
    expect(verifiesOutside(key, message, signature)).toBe(true);
  });

  it.each([
    ["without a context", new Uint8Array()],
    ["with a context of 255 bytes", new Uint8Array(255).fill(3)],
  ])("signs 16 MiB %s", async (_what, binding) => {
    const { kms } = await shared();
    const key = await createKey(kms);
    const message = randomFillSync(new Uint8Array(16 * mebibyte));
    const chunks = cut(message, [mebibyte, 0, 100, 3 * mebibyte]);
    const signature = await signParts(kms, header(key.keyId, binding), ...chunks);
    expect(verifiesOutside(key, message, signature, binding)).toBe(true);
    expect(verifiesOutside(key, message, signature, bytesOf("another"))).toBe(false);
    expect(await readDeeds(kms, key.keyId)).toEqual([
      "CREATE OK algorithm=ML-DSA-44, usage=SIGN",
      `SIGN OK input=stream, bytes=${16 * mebibyte}`,
    ]);
  });

  it("works over Connect too", async () => {
    const { kms, connect } = await shared();
    const key = await createKey(kms);
    const signature = await signParts(connect, header(key.keyId), chunk(bytesOf("a")), chunk(bytesOf("b")));
    expect(verifiesOutside(key, bytesOf("ab"), signature)).toBe(true);
  });

  const data = chunk(bytesOf("data"));
  const badStreams: [what: string, parts: (keyId: string) => Part[], fields: string[]][] = [
    ["nothing at all", () => [], ["header"]],
    ["no header", () => [data], ["header"]],
    ["a header after a chunk", (keyId) => [data, header(keyId)], ["header"]],
    ["two headers", (keyId) => [header(keyId), data, header(keyId), data], ["header"]],
    ["a header alone", (keyId) => [header(keyId)], ["chunk"]],
    ["only empty chunks", (keyId) => [header(keyId), chunk(bytesOf("")), chunk(bytesOf(""))], ["chunk"]],
    ["a message without a part", (keyId) => [header(keyId), {}], ["part"]],
    ["a header without a keyId", () => [header(""), data], ["header.keyId"]],
    ["a context of 256 bytes", (keyId) => [header(keyId, new Uint8Array(256)), data], ["header.context"]],
  ];
  it.each(badStreams)("rejects %s, and signs nothing", async (_what, parts, fields) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.signStream(partsOf(...parts(keyId))))).toEqual(invalid(...fields));
    expect((await readDeeds(kms, keyId)).filter((deed) => deed.startsWith("SIGN OK"))).toEqual([]);
  });

  it.each([
    ["a second header", (keyId: string) => [header(keyId), data, header(keyId)]],
    ["no chunk", (keyId: string) => [header(keyId)]],
  ])("has an entry for a stream that is rejected for its parts: %s", async (_what, parts) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    await refusal(kms.signStream(partsOf(...parts(keyId))));
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=FIELD_INVALID"]);
  });

  it("signs and records nothing for a cancelled stream", async () => {
    const server = await start();
    const { kms } = server;
    const { keyId } = await createKey(kms);
    const controller = new AbortController();
    async function* parts(): AsyncGenerator<Part> {
      yield header(keyId);
      yield data;
      controller.abort();
      yield data;
    }
    await refusal(kms.signStream(parts(), { signal: controller.signal }));
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });

  it("signs nothing for a stream that ends and is cancelled at the same time, as Node clients do", async () => {
    const server = await start();
    const { kms, url } = server;
    const { keyId } = await createKey(kms);
    const session = http2.connect(url);
    onTestFinished(() => session.destroy());
    const path = "/kms.KmsService/SignStream";
    const call = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    call.on("error", () => {});
    call.write(frame(header(keyId)));
    await new Promise((resolve) => call.write(frame(data), resolve));
    call.end();
    call.close(http2.constants.NGHTTP2_CANCEL);
    await new Promise((resolve) => call.once("close", resolve));
    // Once the server answers later frames on the connection, it has read the cancellation.
    await new Promise((resolve) => session.ping(resolve));
    expect((await closeAndReadDeeds(server)).slice(1)).toEqual([]);
  });

  it.each(["SLH-DSA-SHA2-128f", "ML-KEM-512"])("rejects a %s key on the header message", async (name) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { algorithm: name });
    expect(await refusal(kms.signStream(stalled(header(keyId))))).toEqual(usageRefuses);
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=KEY_USAGE_MISMATCH"]);
  });

  it("rejects a missing or destroyed key on the header message", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId });
    expect(await refusal(kms.signStream(stalled(header(keyId))))).toEqual(stateRefuses);
    const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };
    expect(await refusal(kms.signStream(stalled(header("key-no"))))).toEqual(notFound);
  });

  it.each(["rotate", "destroy"] as const)(
    "fails at the end if another caller manages to %s the key in the meantime",
    async (change) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms);
      await kms.sign({ keyId, data: bytesOf("so that it is in use") });
      async function* parts(): AsyncGenerator<Part> {
        yield header(keyId);
        yield data;
        await (change === "rotate" ? kms.rotateKey({ keyId }) : kms.destroyKey({ keyId }));
        yield data;
      }
      expect(await refusal(kms.signStream(parts()))).toEqual(stateRefuses);
      expect((await readDeeds(kms, keyId)).at(-1)).toBe("SIGN REFUSED reason=KEY_STATE_INVALID");
    },
  );
});
