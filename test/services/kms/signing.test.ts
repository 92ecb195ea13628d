import { createHash, createPublicKey, encapsulate, randomFillSync } from "node:crypto";
import { constants } from "node:http2";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  type BatchSignResponse,
  BatchSignResponseSchema,
  SignStreamRequestSchema,
} from "#gen/kms/kms_service_pb.ts";
import { mlDsaNames, signatureAlgorithms, slhDsaNames } from "../../../src/crypto/algorithms.ts";
import { countFitting } from "../../../src/services/kms/batch-size.ts";
import { connectHttp2, envelope, readStream, request } from "../../server/raw.ts";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { describeRefusal, failureOf, outcomeOf, refusal } from "../../support/refusal.ts";
import { invalid, invalidArgument, stateRefuses, usageRefuses, wrongLength } from "../../support/refusals.ts";
import { streamOf } from "../../support/streams.ts";
import { present, restRefusal } from "../answers.ts";
import {
  closeAndReadDeeds,
  createKey,
  describeKms,
  readDeeds,
  sign,
  verifiesOutside,
  withKey,
} from "./kms-server.ts";
import { chunk, header, type SignPart, stalled } from "./sign-parts.ts";

/** Signature lengths of one algorithm of each family: FIPS 204, table 2; FIPS 205, table 2. */
const signatureBytes = Object.entries({ "ML-DSA-44": 2420, "SLH-DSA-SHA2-128f": 17088 });
/** Ciphertext lengths: FIPS 203, table 3. */
const ciphertextBytes = Object.entries({ "ML-KEM-512": 768, "ML-KEM-768": 1088, "ML-KEM-1024": 1568 });
const data = bytesOf("pay 10 to Ada");
const context = bytesOf("till 7");
const longest = new Uint8Array(255).fill(1);

/** FIPS 204, algorithm 7, line 6, as in the comment of SignRequest.mu. */
function computeMu(publicKey: Uint8Array, message: Uint8Array, binding: Uint8Array): Uint8Array {
  const shake256 = (...parts: Uint8Array[]) =>
    createHash("shake256", { outputLength: 64 }).update(Buffer.concat(parts)).digest();
  const tr = shake256(publicKey);
  return new Uint8Array(shake256(tr, Uint8Array.of(0, binding.length), binding, message));
}

describeKms("KmsService.Sign", ({ shared }) => {
  it.each(signatureBytes)(
    "with a %s key returns %i bytes that other software verifies, bound to their context",
    async (algorithm, bytes) => {
      const { kms, key, keyId } = await withKey(shared(), { algorithm });
      const { result } = await kms.sign({ keyId, data });
      const { signature } = present(result);
      expect(result).toMatchObject({ keyId, algorithm });
      expect(signature).toHaveLength(bytes);
      expect(verifiesOutside(key, data, signature)).toBe(true);
      expect(verifiesOutside(key, data, signature, context)).toBe(false);
      const bound = await sign(kms, { keyId, data, context: longest });
      expect(verifiesOutside(key, data, bound, longest)).toBe(true);
      expect(verifiesOutside(key, data, bound)).toBe(false);
    },
  );

  it("returns for a mu the plain signature over its message, but not for an SLH-DSA key", async () => {
    const { kms, key } = await withKey(shared());
    for (const binding of [new Uint8Array(), longest]) {
      const mu = computeMu(present(key.publicKey), data, binding);
      const signature = await sign(kms, { keyId: key.keyId, mu });
      expect(verifiesOutside(key, data, signature, binding)).toBe(true);
      expect(verifiesOutside(key, bytesOf("another"), signature, binding)).toBe(false);
    }
    const { keyId } = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128f" });
    expect(await refusal(kms.sign({ keyId, mu: new Uint8Array(64) }))).toEqual(usageRefuses);
  });
});

describeKms("KmsService.Verify", ({ shared }) => {
  it.each(signatureBytes)(
    "with a %s key accepts only the key's own signatures, of the right length, %i",
    async (algorithm, bytes) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const other = await createKey(kms, { algorithm });
      const signature = await sign(kms, { keyId, data, context });
      const valid = async (request: object) =>
        (await kms.verify({ keyId, data, signature, context, ...request })).result?.valid;
      expect(await valid({})).toBe(true);
      const changes = [
        ...[{ signature: flipBit(signature, 0) }, { signature: flipBit(signature, bytes - 1) }],
        ...[{ data: flipBit(data, 3) }, { data: Uint8Array.of(...data, 0) }],
        ...[{ context: flipBit(context, 0) }, { context: new Uint8Array() }, { keyId: other.keyId }],
      ];
      for (const change of changes) expect(await valid(change)).toBe(false);
      for (const length of [bytes - 1, bytes + 1, 1])
        expect(await refusal(valid({ signature: new Uint8Array(length).fill(1) }))).toEqual(
          wrongLength("signature"),
        );
      expect(await readDeeds(kms, keyId)).toContain("VERIFY REFUSED reason=LENGTH_INVALID");
    },
  );
});

describeKms("KmsService.Encapsulate and Decapsulate", ({ kms, shared }) => {
  it.each(ciphertextBytes)(
    "agree on a 32-byte secret with a %s key, in %i bytes",
    async (algorithm, bytes) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const sent = present((await kms.encapsulate({ keyId })).result);
      const { ciphertext, sharedSecret } = sent;
      expect([ciphertext.length, sharedSecret.length]).toEqual([bytes, 32]);
      expect(sent).toMatchObject({ keyId, algorithm });
      const { result } = await kms.decapsulate({ keyId, ciphertext });
      expect(result).toMatchObject({ keyId, algorithm, sharedSecret });
      for (const length of [bytes - 1, bytes + 1, 1]) {
        const wrong = kms.decapsulate({ keyId, ciphertext: new Uint8Array(length).fill(1) });
        expect(await refusal(wrong)).toEqual(wrongLength("ciphertext"));
      }
      expect(await readDeeds(kms, keyId)).toContain("DECAPSULATE REFUSED reason=LENGTH_INVALID");
    },
  );

  it("agree with an outsider who has only the public key, even after a rotation", async () => {
    const { keyId, publicKeyPem } = await createKey(kms, { algorithm: "ML-KEM-512" });
    const { ciphertext, sharedKey } = encapsulate(createPublicKey(present(publicKeyPem)));
    const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
    const old = await kms.decapsulate({ keyId, ciphertext });
    const fresh = await kms.decapsulate({ keyId: newKeyId, ciphertext });
    expect(old.result?.sharedSecret).toEqual(new Uint8Array(sharedKey));
    expect(fresh.result?.sharedSecret).not.toEqual(new Uint8Array(sharedKey));
  });
});

const messages = (count: number) => Array.from({ length: count }, (_, i) => bytesOf(`message ${i}`));

describeKms("KmsService.BatchSign", ({ shared }) => {
  it.each(["ML-DSA-44", "SLH-DSA-SHA2-128f"])(
    "signs each message in order and bound to the context, with a %s key",
    async (algorithm) => {
      const { kms, key } = await withKey(shared(), { algorithm });
      const data = messages(10);
      const { results, ...about } = await kms.batchSign({ keyId: key.keyId, data, context: longest });
      expect(about).toMatchObject({ keyId: key.keyId, algorithm });
      const verified = results.map(({ signature, error }, i) => [
        error,
        verifiesOutside(key, present(data[i]), present(signature), longest),
        verifiesOutside(key, present(data[i]), present(signature)),
        verifiesOutside(key, bytesOf("message"), present(signature), longest),
      ]);
      expect(verified).toEqual(Array(10).fill([undefined, true, false, false]));
    },
  );

  it("rejects the whole batch if one of its messages is empty, with one audit entry", async () => {
    const { kms, keyId } = await withKey(shared());
    const data = [bytesOf("a"), new Uint8Array(), bytesOf("c")];
    expect(await refusal(kms.batchSign({ keyId, data }))).toEqual(invalid("data[1]"));
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=FIELD_INVALID"]);
    // For callers who may not use the key, it does not exist.
    expect(await refusal(kms.batchSign({ keyId: "key-of-nobody", data }))).toMatchObject({
      reason: "KEY_NOT_FOUND",
    });
  });

  it("signs 1,000 messages, each with its own audit entry", async () => {
    const { kms, key } = await withKey(shared());
    const data = messages(1000);
    const { results } = await kms.batchSign({ keyId: key.keyId, data });
    const isValid = (signature: Uint8Array | undefined, i: number) =>
      verifiesOutside(key, present(data[i]), present(signature));
    expect(results.filter(({ signature }, i) => isValid(signature, i))).toHaveLength(1000);
    const expected = data.map((_, i) => `SIGN OK input=data, batchItem=${i + 1}/1000`);
    expect((await readDeeds(kms, key.keyId)).slice(1)).toEqual(expected);
  });

  it.each(["rotateKey", "destroyKey"] as const)(
    "rejects the whole batch if another caller manages to call %s in the meantime",
    async (change) => {
      const { kms, keyId } = await withKey(shared(), { algorithm: "ML-DSA-87" });
      const batch = refusal(kms.batchSign({ keyId, data: messages(900) }));
      await kms[change]({ keyId });
      expect(await batch).toEqual(stateRefuses);
      const signed = (await readDeeds(kms, keyId)).filter((deed) => deed.startsWith("SIGN"));
      expect(signed).toEqual(["SIGN REFUSED reason=KEY_STATE_INVALID"]);
    },
  );
});

/** 100 names of all kinds, the most that are allowed. */
const everyName = {
  subject: "CN=Zoë\\, release,OU=Signing,O=Example,C=DE",
  dnsNames: ["*.example.com", ...Array.from({ length: 92 }, (_, i) => `a${i}.Example.com`)],
  ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
  emails: ["release@example.com"],
  uris: ["https://example.com/release", "urn:example:release", "urn:1", "urn:2"],
};

describeKms("KmsService.CreateCsr", ({ start, shared }) => {
  it("leaves one entry with the SHA-256 of the request, without its names", async () => {
    const { kms, keyId } = await withKey(shared());
    const { csr } = present((await kms.createCsr({ keyId, ...everyName })).result);
    const digest = createHash("sha256").update(csr).digest("hex");
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([`SIGN OK input=csr, sha256=${digest}`]);
  });

  it("returns no CSR that is recorded after the key was destroyed, and records all others", async () => {
    const { kms, keyId } = await withKey(start(), { algorithm: "SLH-DSA-SHA2-128f" });
    const requests = Array.from({ length: 8 }, () =>
      outcomeOf(kms.createCsr({ keyId, subject: "CN=release" })),
    );
    await kms.destroyKey({ keyId });
    const outcomes = await Promise.all(requests);
    const deeds = await readDeeds(kms, keyId);
    const destroyed = deeds.findIndex((deed) => deed.startsWith("DESTROY"));
    const signed = deeds.flatMap((deed, at) => (deed.startsWith("SIGN OK") ? [at] : []));
    expect(signed.filter((at) => at > destroyed)).toEqual([]);
    expect(signed).toHaveLength(outcomes.filter((outcome) => outcome === "answer").length);
  });
});

const limitBytes = 4 * 1024 * 1024;

/** How each encoding measures a response; binary includes the prefix of a gRPC message. */
const sizeOf = {
  binary: (response: BatchSignResponse) => 5 + toBinary(BatchSignResponseSchema, response).length,
  json: (response: BatchSignResponse) =>
    toJsonString(BatchSignResponseSchema, response, { alwaysEmitImplicit: true }).length,
};

describe.each([...mlDsaNames, ...slhDsaNames])("a response with %s signatures", (algorithm) => {
  it.each(["binary", "json"] as const)("holds the calculated number in 4 MiB: %s", (form) => {
    const signature = new Uint8Array(signatureAlgorithms[algorithm].signatureBytes);
    const keyId = `key-${crypto.randomUUID()}`;
    const sizeWith = (count: number) => {
      const results = Array(count).fill({ signature });
      return sizeOf[form](create(BatchSignResponseSchema, { status: "success", results, keyId, algorithm }));
    };
    const most = countFitting(algorithm, form);
    expect(sizeWith(most)).toBeLessThanOrEqual(limitBytes);
    // At most one in a hundred is wasted.
    expect(sizeWith(Math.ceil(most * 1.01) + 1)).toBeGreaterThan(limitBytes);
  });
});

describeKms("KmsService.BatchSign with more signatures than fit into a response", ({ shared }) => {
  const data = Array<Uint8Array>(1000).fill(bytesOf("message"));

  it.each(["ML-DSA-87", "SLH-DSA-SHA2-128f"] as const)(
    "signs nothing with %s, states how many fit, and leaves one audit entry",
    async (algorithm) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const error = await failureOf(kms.batchSign({ keyId, data }));
      expect(describeRefusal(error)).toEqual(invalidArgument("BATCH_TOO_LARGE", "data"));
      expect(error.rawMessage).toContain(`at most ${countFitting(algorithm, "binary")}`);
      expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=BATCH_TOO_LARGE"]);
    },
  );

  it("counts bytes in base64 over REST", async () => {
    const { kms, rest, keyId } = await withKey(shared(), { algorithm: "ML-DSA-65" });
    const items = data.map((message) => Buffer.from(message).toString("base64"));
    const answer = await rest("POST /api/kms/batch-sign", { keyId, data: items });
    expect(restRefusal(answer)).toMatchObject({ reason: "BATCH_TOO_LARGE" });
    expect(answer.text).toContain(`at most ${countFitting("ML-DSA-65", "json")}`);
    expect((await kms.batchSign({ keyId, data: data.slice(0, 3) })).results).toHaveLength(3);
  });
});

const mebibyte = 1024 * 1024;
const part = chunk(bytesOf("data"));
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
  ["no header", (keyId) => [part, header(keyId)], "header"],
  ["a message without a part first", (keyId) => [{}, header(keyId)], "part"],
  ["two headers", (keyId) => [header(keyId), part, header(keyId), part], "header", "yes"],
  ["a header alone", (keyId) => [header(keyId)], "chunk", "yes"],
  ["only empty chunks", (keyId) => [header(keyId), chunk(bytesOf("")), chunk(bytesOf(""))], "chunk", "yes"],
  ["a message without a part", (keyId) => [header(keyId), {}], "part", "yes"],
  ["a header without a keyId", () => [header(""), part], "header.keyId"],
  ["a context of 256 bytes", (keyId) => [header(keyId, new Uint8Array(256)), part], "header.context"],
];

describeKms("KmsService.SignStream", ({ start, shared }) => {
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
      yield part;
      controller.abort();
      yield part;
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
    await new Promise((resolve) => call.write(frame(gRpc, part), resolve));
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
        yield part;
        await kms[change]({ keyId });
        yield part;
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

describeKms("the audit log", ({ start, shared }) => {
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
    expect(await refusal(kms.signStream(stalled(header(keyId), part)))).toMatchObject({
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
