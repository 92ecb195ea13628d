/** The handlers with a fake key service: how they treat secrets and invalid answers. */
import { randomBytes } from "node:crypto";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, createHandlerContext, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { type EncryptResponse, KeyManagementService } from "#gen/kubernetes/kms_pb.ts";
import type { ApiClient, CallLimits } from "../../../src/cli/connection/api-client.ts";
import { createStoredTokens } from "../../../src/cli/connection/credentials.ts";
import { refuse } from "../../../src/errors.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { lengthInvalid } from "../../../test/support/refusals.ts";
import { kemAnnotation } from "../envelope.ts";
import { createKeyService } from "../key-service.ts";
import { createService } from "../service.ts";

const keyId = "key-01234567-89ab-4cde-8f01-23456789abcd";
const key = { keyId, algorithm: "ML-KEM-768", usage: "KEM", status: "ACTIVE", name: "etcd", version: 1 };

/** Key service answers by call name. */
type Answers = Record<string, (limits: CallLimits) => Record<string, unknown>>;

/** The plugin with a key service that gives these answers. */
function makePlugin(answers: Answers = {}) {
  const sharedSecret = randomBytes(32);
  const encapsulated = { keyId, algorithm: "ML-KEM-768", ciphertext: randomBytes(1088) };
  const shared: Uint8Array[] = [];
  const share = (): Uint8Array => {
    const copy = Uint8Array.from(sharedSecret);
    shared.push(copy);
    return copy;
  };
  const sound: Answers = {
    GetKey: () => ({ result: key }),
    Encapsulate: () => ({ result: { ...encapsulated, sharedSecret: share() } }),
    Decapsulate: () => ({ result: { keyId, algorithm: "ML-KEM-768", sharedSecret: share() } }),
    ...answers,
  };
  const asked: string[] = [];
  const server = {
    url: "http://key-service.test",
    withToken: () => server,
    ask: async (method: DescMethod, _request: object, limits: CallLimits) => {
      asked.push(method.name);
      return create(method.output, sound[method.name]?.(limits));
    },
  } as unknown as ApiClient;
  const keys = createKeyService({
    server,
    tokens: createStoredTokens(() => undefined),
    keyName: "name/etcd",
  });
  return { service: createService({ keys, maxServerMs: 10_000, onHealth: () => {} }), shared, asked };
}

function contextOf(method: DescMethod, timeoutMs?: number): HandlerContext & { abort(): void } {
  return createHandlerContext({
    service: KeyManagementService,
    method,
    protocolName: "grpc",
    requestMethod: "POST",
    url: "http://localhost/",
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
}

const { status, encrypt, decrypt } = KeyManagementService.method;

type Service = ReturnType<typeof createService>;

/** Encrypts 32 bytes. */
async function encryptWith(service: Service, plaintext = Uint8Array.from(randomBytes(32))) {
  const request = create(encrypt.input, { plaintext, uid: "1" });
  return (await service.encrypt(request, contextOf(encrypt))) as EncryptResponse;
}

async function decryptWith(
  service: Service,
  { ciphertext, keyId, annotations }: Partial<EncryptResponse>,
  context = contextOf(decrypt),
) {
  const fields = {
    ciphertext: ciphertext ?? new Uint8Array(61),
    keyId: keyId ?? "",
    annotations: annotations ?? {},
  };
  return service.decrypt(create(decrypt.input, { ...fields, uid: "2" }), context);
}

describe("secrets in the plugin's memory", () => {
  it("are wiped: the plaintext and shared secret of Encrypt when it ends", async () => {
    const { service, shared } = makePlugin();
    const plaintext = Uint8Array.from(randomBytes(32));
    await encryptWith(service, plaintext);
    expect([...shared, plaintext]).toEqual([new Uint8Array(32), new Uint8Array(32)]);
  });

  it("are wiped even if Encrypt fails", async () => {
    const { service } = makePlugin({ Encapsulate: () => ({ result: { keyId } }) });
    const plaintext = Uint8Array.from(randomBytes(32));
    await refusal(encryptWith(service, plaintext));
    expect(plaintext).toEqual(new Uint8Array(32));
  });

  it("are wiped: the plaintext of Decrypt once its answer is written", async () => {
    const { service, shared } = makePlugin();
    const plaintext = randomBytes(32);
    const encrypted = await encryptWith(service, Uint8Array.from(plaintext));
    const context = contextOf(decrypt);
    const answer = await decryptWith(service, encrypted, context);
    expect(Buffer.from(answer.plaintext ?? "")).toEqual(plaintext);
    context.abort();
    expect([...shared, Uint8Array.from(answer.plaintext ?? [])]).toEqual(Array(3).fill(new Uint8Array(32)));
  });
});

describe("an invalid answer", () => {
  const unavailable = { code: "Unavailable", reason: "KEY_SERVICE_UNAVAILABLE" };

  it.each<[string, Answers]>([
    ["no result", { Encapsulate: () => ({}) }],
    ["a KEM ciphertext of the wrong length", sized(1087, 32)],
    ["an empty shared secret", sized(1088, 0)],
    ["a shared secret of 31 bytes", sized(1088, 31)],
    ["an invalid ID", { Encapsulate: () => ({ result: { keyId: "k".repeat(2000) } }) }],
  ])("with %s makes Encrypt fail without encrypting", async (_, answers) => {
    const { service } = makePlugin(answers);
    expect(await refusal(encryptWith(service))).toEqual(unavailable);
  });

  it.each([0, 31, 33])("with a shared secret of %i bytes makes Decrypt fail", async (length) => {
    const { service } = makePlugin({
      Decapsulate: () => ({ result: { sharedSecret: new Uint8Array(length) } }),
    });
    expect(await refusal(decryptWith(service, await encryptWith(service)))).toEqual(unavailable);
  });

  function sized(ciphertextBytes: number, secretBytes: number): Answers {
    const result = {
      keyId,
      algorithm: "ML-KEM-768",
      ciphertext: new Uint8Array(ciphertextBytes),
      sharedSecret: new Uint8Array(secretBytes),
    };
    return { Encapsulate: () => ({ result }) };
  }
});

describe("Decrypt", () => {
  it("makes no call for a malformed request", async () => {
    const { service, asked } = makePlugin();
    await refusal(decryptWith(service, { keyId }));
    expect(asked).toEqual([]);
  });

  it("rejects a KEM ciphertext of the wrong length for the key before decapsulating", async () => {
    const { service, asked } = makePlugin();
    const ciphertext = new Uint8Array(61).fill(1);
    const annotations = { [kemAnnotation]: new Uint8Array(1568) };
    expect(await refusal(decryptWith(service, { keyId, ciphertext, annotations }))).toMatchObject(
      lengthInvalid,
    );
    expect(asked).not.toContain("Decapsulate");
  });

  it("asks for a key ID's owner once, however often the ID is used", async () => {
    const { service, asked } = makePlugin();
    const encrypted = await encryptWith(service);
    const other = makePlugin({ Decapsulate: () => ({ result: { sharedSecret: new Uint8Array(32) } }) });
    for (let i = 0; i < 3; i += 1) await refusal(decryptWith(other.service, encrypted));
    expect(other.asked).toEqual(["GetKey", "GetKey", "Decapsulate", "Decapsulate", "Decapsulate"]);
    await decryptWith(service, encrypted);
    expect(asked).toEqual(["Encapsulate", "Decapsulate"]);
  });
});

describe("Status", () => {
  const statusOf = (answers: Answers) =>
    makePlugin(answers).service.status(create(status.input), contextOf(status));

  it("asks the key service once", async () => {
    const { service, asked } = makePlugin();
    expect(await service.status(create(status.input), contextOf(status))).toEqual({
      version: "v2",
      healthz: "ok",
      keyId,
    });
    expect(asked).toEqual(["GetKey"]);
  });

  it.each(["DISABLED", "DESTROY_SCHEDULED", "DESTROYED", "ROTATED", ""])(
    "reports no key if the newest version is %j, so that the API server stops writing",
    async (keyStatus) => {
      const answer = await statusOf({ GetKey: () => ({ result: { ...key, status: keyStatus } }) });
      expect(answer).toMatchObject({
        keyId: "",
        healthz: expect.stringContaining(`is ${keyStatus}; it must be ACTIVE`),
      });
    },
  );

  it("reports no key if it is a signing key", async () => {
    const answer = await statusOf({
      GetKey: () => ({ result: { ...key, usage: "SIGN", algorithm: "ML-DSA-65" } }),
    });
    expect(answer).toMatchObject({
      keyId: "",
      healthz: expect.stringContaining("an ML-DSA-65 key for SIGN"),
    });
  });

  it("leaves itself time to report a slow key service", async () => {
    let limitMs = 0;
    const { service } = makePlugin({
      GetKey: ({ timeoutMs = 0 }) => {
        limitMs = timeoutMs;
        throw new ConnectError("late", Code.DeadlineExceeded);
      },
    });
    const answer = await service.status(create(status.input), contextOf(status, 9000));
    expect(limitMs).toBeGreaterThan(6000);
    expect(limitMs).toBeLessThanOrEqual(7200);
    expect(answer).toMatchObject({ keyId: "", healthz: expect.stringContaining("did not answer in time") });
  });

  it("keeps the last known key while the token is refused", async () => {
    let isRefusing = false;
    const { service } = makePlugin({
      GetKey: () => {
        if (isRefusing) throw refuse("TOKEN_EXPIRED", "the token has expired");
        return { result: key };
      },
    });
    await service.status(create(status.input), contextOf(status));
    isRefusing = true;
    expect(await service.status(create(status.input), contextOf(status))).toEqual({
      version: "v2",
      healthz: "the key service refused the call: the token has expired (TOKEN_EXPIRED)",
      keyId,
    });
  });

  it("reports no key after a refusal of the key, even if the key service no longer answers", async () => {
    const answers = [
      () => ({ result: key }),
      () => ({ result: { ...key, status: "DISABLED" } }),
      () => {
        throw new ConnectError("down", Code.Unavailable);
      },
      () => ({ result: key }),
    ];
    const { service } = makePlugin({ GetKey: () => answers.shift()?.() ?? {} });
    const keyIds = [];
    while (answers.length > 0)
      keyIds.push((await service.status(create(status.input), contextOf(status))).keyId);
    expect(keyIds).toEqual([keyId, "", "", keyId]);
  });

  it("truncates the key service's message and removes its control characters", async () => {
    const { healthz = "" } = await statusOf({
      GetKey: () => {
        throw refuse("KEY_DAMAGED", `\u001b[2J\nlevel=fatal ${"x".repeat(5000)}`);
      },
    });
    expect(healthz).toMatch(/^the key service refused the call: \ufffd\[2J level=fatal x+$/);
    expect(healthz.length).toBe(500);
  });

  it("fails if the plugin has a bug", async () => {
    const call = statusOf({
      GetKey: () => {
        throw new TypeError("a bug");
      },
    });
    expect(await refusal(Promise.resolve(call))).toEqual({ code: "Internal", reason: "INTERNAL" });
  });
});
