import { randomFillSync } from "node:crypto";
import { constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { connectHttp2, envelope } from "../../server/raw.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses } from "../../support/refusals.ts";
import { streamOf } from "../../support/streams.ts";
import { present } from "../answers.ts";
import { closeAndReadDeeds, createKey, describeKms, readDeeds, verifiesOutside } from "./kms-server.ts";
import { chunk, header, type SignPart, stalled } from "./sign-parts.ts";

const mebibyte = 1024 * 1024;

const frame = (part: SignPart) =>
  envelope(toBinary(SignStreamRequestSchema, create(SignStreamRequestSchema, part)));

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

describeKms("KmsService.SignStream", (start, shared) => {
  it.each([
    ["without a context", new Uint8Array()],
    ["with a context of 255 bytes", new Uint8Array(255).fill(3)],
  ])("signs 16 MiB %s", async (_what, binding) => {
    const { kms } = await shared();
    const key = await createKey(kms);
    const message = randomFillSync(new Uint8Array(16 * mebibyte));
    const parts = [header(key.keyId, binding), ...cut(message, [mebibyte, 0, 100, 3 * mebibyte])];
    const { status, result } = await kms.signStream(streamOf(...parts));
    expect(status).toBe("success");
    expect(result).toMatchObject({ keyId: key.keyId, algorithm: "ML-DSA-44" });
    const { signature } = present(result);
    expect(verifiesOutside(key, message, signature, binding)).toBe(true);
    expect(verifiesOutside(key, message, signature, bytesOf("another"))).toBe(false);
    expect(await readDeeds(kms, key.keyId)).toEqual([
      "CREATE OK algorithm=ML-DSA-44, usage=SIGN",
      `SIGN OK input=stream, bytes=${16 * mebibyte}`,
    ]);
  });

  const data = chunk(bytesOf("data"));
  const badStreams: [what: string, parts: (keyId: string) => SignPart[], fields: string[]][] = [
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
    expect(await refusal(kms.signStream(streamOf(...parts(keyId))))).toEqual(invalid(...fields));
    expect((await readDeeds(kms, keyId)).filter((deed) => deed.startsWith("SIGN OK"))).toEqual([]);
  });

  it("signs and records nothing for a cancelled stream", async () => {
    const server = await start();
    const { kms } = server;
    const { keyId } = await createKey(kms);
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
    const server = await start();
    const { kms, url } = server;
    const { keyId } = await createKey(kms);
    const session = connectHttp2(url);
    const path = "/kms.KmsService/SignStream";
    const call = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    call.on("error", () => {});
    call.write(frame(header(keyId)));
    await new Promise((resolve) => call.write(frame(data), resolve));
    call.end();
    call.close(constants.NGHTTP2_CANCEL);
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

  it.each(["rotate", "destroy"] as const)(
    "fails at the end if another caller manages to %s the key in the meantime",
    async (change) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms);
      await kms.sign({ keyId, data: bytesOf("so that it is in use") });
      async function* parts(): AsyncGenerator<SignPart> {
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
