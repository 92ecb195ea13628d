/** The handlers with a fake key service: how they treat secrets and invalid answers; and their server, without one. */
import { randomBytes } from "node:crypto";
import { create, type DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  createHandlerContext,
  createRouterTransport,
  type HandlerContext,
} from "@connectrpc/connect";
import { pino } from "pino";
import { Registry } from "prom-client";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EncryptResponse, KeyManagementService, StatusResponseSchema } from "#gen/kubernetes/kms_pb.ts";
import type { ApiClient, CallLimits } from "../../../src/cli/connection/api-client.ts";
import { createStoredTokens } from "../../../src/cli/connection/credentials.ts";
import { refuse } from "../../../src/errors.ts";
import { createCallMetrics } from "../../../src/server/call-metrics.ts";
import { outcomeOf, refusal } from "../../../test/support/refusal.ts";
import { kemAnnotation } from "../envelope.ts";
import { startGrpcServer } from "../grpc-server.ts";
import { createKeyService } from "../key-service.ts";
import { createObserver } from "../observe.ts";
import { keyServiceUnavailable } from "../reasons.ts";
import { createService } from "../service.ts";
import { connectTo, makeSocketPath } from "./start-plugin.ts";

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
  const tokens = createStoredTokens(() => undefined);
  const keys = createKeyService({ server, tokens, keyName: "name/etcd" });
  const service = createService({ keys, maxServerMs: 10_000, onHealth: () => {} });
  const readStatus = async (timeoutMs?: number) =>
    service.status(create(status.input), contextOf(status, timeoutMs));
  return { service, shared, asked, readStatus };
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
  const zeros = new Uint8Array(32);

  it("are wiped: the plaintext and shared secret of Encrypt when it ends", async () => {
    const { service, shared } = makePlugin();
    const plaintext = Uint8Array.from(randomBytes(32));
    await encryptWith(service, plaintext);
    expect([...shared, plaintext]).toEqual([zeros, zeros]);
  });

  it("are wiped even if Encrypt fails", async () => {
    const { service } = makePlugin({ Encapsulate: () => ({ result: { keyId } }) });
    const plaintext = Uint8Array.from(randomBytes(32));
    await refusal(encryptWith(service, plaintext));
    expect(plaintext).toEqual(zeros);
  });

  it("are wiped: the plaintext of Decrypt once its answer is written", async () => {
    const { service, shared } = makePlugin();
    const plaintext = randomBytes(32);
    const encrypted = await encryptWith(service, Uint8Array.from(plaintext));
    const context = contextOf(decrypt);
    const answer = await decryptWith(service, encrypted, context);
    expect(Buffer.from(answer.plaintext ?? "")).toEqual(plaintext);
    context.abort();
    expect([...shared, Uint8Array.from(answer.plaintext ?? [])]).toEqual([zeros, zeros, zeros]);
  });
});

describe("an invalid answer", () => {
  const result = { keyId, algorithm: "ML-KEM-768" };
  const sized = (ciphertextBytes: number, secretBytes: number) => ({
    result: {
      ...result,
      ciphertext: new Uint8Array(ciphertextBytes),
      sharedSecret: new Uint8Array(secretBytes),
    },
  });

  it.each<[string, object]>([
    ["no result", {}],
    ["a KEM ciphertext of the wrong length", sized(1087, 32)],
    ["an empty shared secret", sized(1088, 0)],
    ["a shared secret of 31 bytes", sized(1088, 31)],
    ["an invalid ID", { result: { keyId: "k".repeat(2000) } }],
  ])("with %s makes Encrypt fail without encrypting", async (_, answer) => {
    const { service } = makePlugin({ Encapsulate: () => ({ ...answer }) });
    expect(await outcomeOf(encryptWith(service))).toBe("KEY_SERVICE_UNAVAILABLE");
  });

  it.each([0, 31, 33])("with a shared secret of %i bytes makes Decrypt fail", async (length) => {
    const { service } = makePlugin({ Decapsulate: () => sized(0, length) });
    const decrypting = decryptWith(service, await encryptWith(service));
    expect(await outcomeOf(decrypting)).toBe("KEY_SERVICE_UNAVAILABLE");
  });
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
    expect(await outcomeOf(decryptWith(service, { keyId, ciphertext, annotations }))).toBe("LENGTH_INVALID");
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
  const fails = (error: Error) => () => {
    throw error;
  };

  it("asks the key service once", async () => {
    const { readStatus, asked } = makePlugin();
    expect(await readStatus()).toEqual({ version: "v2", healthz: "ok", keyId });
    expect(asked).toEqual(["GetKey"]);
  });

  const states = ["DISABLED", "DESTROY_SCHEDULED", "DESTROYED", "ROTATED", ""];
  it.each([
    ...states.map((status) => [{ status }, `is ${status}; it must be ACTIVE`] as const),
    [{ usage: "SIGN", algorithm: "ML-DSA-65" }, "an ML-DSA-65 key for SIGN"] as const,
  ])("reports no key if it is %j, so that the API server stops writing", async (change, healthz) => {
    const { readStatus } = makePlugin({ GetKey: () => ({ result: { ...key, ...change } }) });
    expect(await readStatus()).toMatchObject({ keyId: "", healthz: expect.stringContaining(healthz) });
  });

  it("leaves itself time to report a slow key service", async () => {
    let limitMs = 0;
    const { readStatus } = makePlugin({
      GetKey: ({ timeoutMs = 0 }) => {
        limitMs = timeoutMs;
        throw new ConnectError("late", Code.DeadlineExceeded);
      },
    });
    const healthz = expect.stringContaining("did not answer in time");
    expect(await readStatus(9000)).toMatchObject({ keyId: "", healthz });
    expect(limitMs).toBeGreaterThan(6000);
    expect(limitMs).toBeLessThanOrEqual(7200);
  });

  it("keeps the last known key while the service or the token fails, but not after a refusal of the key", async () => {
    const answers = [
      () => ({ result: key }),
      fails(refuse("TOKEN_EXPIRED", "the token has expired")),
      () => ({ result: { ...key, status: "DISABLED" } }),
      fails(new ConnectError("down", Code.Unavailable)),
      () => ({ result: key }),
    ];
    const { readStatus } = makePlugin({ GetKey: () => answers.shift()?.() ?? {} });
    const found = [];
    while (answers.length > 0) found.push(await readStatus());
    expect(found.map((one) => one.keyId)).toEqual([keyId, keyId, "", "", keyId]);
    const refused = "the key service refused the call: the token has expired (TOKEN_EXPIRED)";
    expect(found[1]?.healthz).toBe(refused);
  });

  it("truncates the key service's message and removes its control characters", async () => {
    const damaged = refuse("KEY_DAMAGED", `\u001b[2J\nlevel=fatal ${"x".repeat(5000)}`);
    const { healthz = "" } = await makePlugin({ GetKey: fails(damaged) }).readStatus();
    expect(healthz).toMatch(/^the key service refused the call: \ufffd\[2J level=fatal x+$/);
    expect(healthz.length).toBe(500);
  });

  it("fails if the plugin has a bug", async () => {
    const { readStatus } = makePlugin({ GetKey: fails(new TypeError("a bug")) });
    expect(await refusal(readStatus())).toEqual({ code: "Internal", reason: "INTERNAL" });
  });
});

/** A service whose Status waits for the test, behind the observer. */
function makeObserved(maxCalls: number) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const registry = new Registry();
  const observer = createObserver({ logger, metrics: createCallMetrics(registry, [1]), maxCalls });
  const waiting: (() => void)[] = [];
  const transport = createRouterTransport(
    ({ service }) =>
      void service(KeyManagementService, {
        status: async () => {
          await new Promise<void>((resolve) => waiting.push(resolve));
          return create(StatusResponseSchema, { healthz: "ok" });
        },
        encrypt: () => {
          throw refuse(keyServiceUnavailable, "the key service is down");
        },
        decrypt: () => {
          throw new TypeError("a bug with a secret in its message");
        },
      }),
    { router: { interceptors: [observer] } },
  );
  return { client: createClient(KeyManagementService, transport), lines, registry, waiting };
}

describe("plugin calls", () => {
  it("above the limit are refused immediately, until others finish", async () => {
    const { client, waiting, registry } = makeObserved(2);
    const running = [client.status({}), client.status({})];
    await expect.poll(() => waiting.length).toBe(2);
    expect(await refusal(client.status({}))).toEqual({
      code: Code[Code.ResourceExhausted],
      reason: "CONCURRENCY_LIMITED",
    });
    for (const resolve of waiting) resolve();
    expect((await Promise.all(running)).map(({ healthz }) => healthz)).toEqual(["ok", "ok"]);
    const next = client.status({});
    await expect.poll(() => waiting.length).toBe(3);
    waiting[2]?.();
    await next;
    const text = await registry.metrics();
    expect(text).toContain('code="OK"} 3');
    expect(text).toContain('code="ResourceExhausted"} 1');
    expect(text).toContain('qsp_calls_running{method="v2.KeyManagementService/Status"} 0');
  });

  it("that fail because of the key service or the plugin are logged as errors", async () => {
    const { client, lines } = makeObserved(2);
    expect(await refusal(client.encrypt({ uid: "1" }))).toMatchObject({ reason: "KEY_SERVICE_UNAVAILABLE" });
    expect(await refusal(client.decrypt({ uid: "2" }))).toEqual({ code: "Internal", reason: "INTERNAL" });
    expect(lines).toMatchObject([
      { level: 50, call: "Encrypt", uid: "1", code: "Unavailable", message: "the key service is down" },
      { level: 50, call: "Decrypt", uid: "2", code: "Internal", err: { type: "TypeError" } },
    ]);
  });
});

const hourMs = 3_600_000;

it("the server stops without waiting for a message that was too large to read", async () => {
  const path = makeSocketPath();
  const server = await startGrpcServer({
    service: { status: () => ({}), encrypt: () => ({}), decrypt: () => ({}) },
    interceptors: [],
    place: { path, groupId: undefined },
    maxCallMs: hourMs,
    maxDrainMs: hourMs,
  });
  const { client, close } = connectTo(path);
  onTestFinished(close);
  const tooLarge = client.encrypt({ plaintext: new Uint8Array(70_000) });
  expect(await refusal(tooLarge)).toMatchObject({ code: "ResourceExhausted" });
  await server.close();
});
