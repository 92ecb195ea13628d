/** Creating, showing, exporting, rotating and destroying keys. */
import { createPublicKey, verify } from "node:crypto";
import { toJsonString } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { calculateJwkThumbprint, importJWK } from "jose";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { GetKeyResponseSchema, ListKeysResponseSchema } from "#gen/kms/kms_service_pb.ts";
import { compositeNames, kemNames, mlDsaNames, slhDsaNames } from "../../../src/crypto/algorithms.ts";
import type { BackgroundFailure } from "../../../src/database/background.ts";
import { createGrantStore } from "../../../src/services/kms/grant-store.ts";
import { bytesOf } from "../../support/bytes.ts";
import { describeRefusal, failureOf, refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import type { State as KeyState } from "./key-states.ts";
import {
  createClock,
  createKey,
  describeKms,
  type KmsClient,
  type KmsServer,
  readDeeds,
  type StartOptions,
  sign,
  startKmsServer,
  verifiesOutside,
  withKey,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";
import { signParts } from "./sign-parts.ts";

/** Raw public key lengths of one algorithm of each family: FIPS 204, table 2; FIPS 205, table 2; FIPS 203, table 3. */
const publicKeyBytes = { "ML-DSA-87": 2592, "SLH-DSA-SHAKE-256f": 64, "ML-KEM-1024": 1568 };
const data = bytesOf("hello");
const supported = [...mlDsaNames, ...slhDsaNames, ...compositeNames, ...kemNames];

describeKms("KmsService.CreateKey", ({ kms, shared }) => {
  it.each(Object.entries(publicKeyBytes))(
    "creates a %s key with a raw public key of %i bytes, which its PEM contains too, as GetKey shows",
    async (algorithm, bytes) => {
      const before = Date.now();
      const key = await createKey(kms, { algorithm });
      const outside = createPublicKey(present(key.publicKeyPem));
      const usage = algorithm.startsWith("ML-KEM") ? "KEM" : "SIGN";
      expect(key).toMatchObject({ algorithm, usage, status: "ACTIVE", origin: "GENERATED" });
      expect(timestampMs(present(key.createdAt))).toBeGreaterThanOrEqual(before);
      expect(timestampMs(present(key.createdAt))).toBeLessThanOrEqual(Date.now());
      expect(key.publicKey).toHaveLength(bytes);
      expect(outside.asymmetricKeyType).toBe(algorithm.toLowerCase());
      expect(new Uint8Array(outside.export({ format: "raw-public" }))).toEqual(key.publicKey);
      const { result } = await kms.getKey({ keyId: key.keyId });
      expect({ ...result, publicJwk: undefined }).toEqual({ ...key, publicJwk: undefined });
    },
  );

  it.each([
    ["", "", "ML-DSA-65", "SIGN"],
    ["SIGN", "", "ML-DSA-65", "SIGN"],
    ["KEM", "", "ML-KEM-768", "KEM"],
    ["ENCRYPT", "", "X-Wing", "ENCRYPT"],
    ["", "ML-KEM-512", "ML-KEM-512", "KEM"],
    ["SIGN", "ML-DSA-87", "ML-DSA-87", "SIGN"],
  ])("with usage '%s' and algorithm '%s' creates %s for %s", async (usage, algorithm, made, madeFor) => {
    expect(await createKey(kms, { usage, algorithm })).toMatchObject({ algorithm: made, usage: madeFor });
  });

  it.each([
    ["ML-DSA-66", 'did you mean "ML-DSA-65"? It must be in list '],
    ["mldsa65", 'did you mean "ML-DSA-65"? It must be in list '],
    ["RSA", "must be in list "],
    ["ECDSA-P256", ""],
    [" ML-DSA-65", ""],
  ])("rejects the algorithm '%s' and lists the supported ones", async (algorithm, advice) => {
    const failure = await failureOf(kms.createKey({ algorithm }));
    expect(describeRefusal(failure)).toEqual(invalid("algorithm"));
    expect(failure.rawMessage).toContain(`algorithm: ${advice}`);
    expect(supported.filter((known) => !failure.rawMessage.includes(known))).toEqual([]);
  });

  it("gives each key a unique ID, which is also the default alias", async () => {
    const [one, other] = [await createKey(kms), await createKey(kms)];
    expect(one.keyId).toMatch(/^key-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(one.alias).toBe(one.keyId);
    expect(other.keyId).not.toBe(one.keyId);
    expect(other.publicKey).not.toEqual(one.publicKey);
  });

  it.each(["🔑".repeat(255), "Schlüssel — 鍵 'x'; drop table kms_keys; --"])(
    "accepts the alias %s and returns it unchanged",
    async (alias) => {
      const { kms, keyId } = await withKey(shared(), { alias });
      expect((await kms.getKey({ keyId })).result?.alias).toBe(alias);
    },
  );
});

describeKms("KmsService.GetKey", ({ kms, shared }) => {
  it("returns a JWK that jose accepts, with its RFC 7638 thumbprint as kid", async () => {
    const { keyId, publicKey } = await createKey(kms);
    const { $typeName: _, ...jwk } = present((await kms.getKey({ keyId })).result?.publicJwk);
    expect(jwk).toMatchObject({ kty: "AKP", alg: "ML-DSA-44" });
    expect(Buffer.from(present(jwk.pub), "base64url")).toEqual(Buffer.from(present(publicKey)));
    expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
    expect(await importJWK(jwk)).toMatchObject({ type: "public" });
  });

  it("still describes a destroyed key", async () => {
    const { kms, key } = await withKey(shared());
    await kms.destroyKey({ keyId: key.keyId });
    const { result } = await kms.getKey({ keyId: key.keyId });
    expect(result).toMatchObject({ ...key, status: "DESTROYED" });
  });

  it.each(["nonsense", "' or 1=1 --", "%", "a".repeat(255), "🔑"])(
    "does not find the keyId %j",
    async (keyId) => {
      expect(await refusal(kms.getKey({ keyId }))).toMatchObject({ reason: "KEY_NOT_FOUND" });
    },
  );
});

describeKms("KmsService.ExportPublicKeys", ({ start }) => {
  it("returns every version that can verify, as PEM and, for ML-DSA, as JWK", async () => {
    const { kms } = await start();
    const name = "release";
    const { keyId } = await createKey(kms, { name, labels: { team: "a" } });
    const signature = await sign(kms, { keyId, data });
    const { newKey } = await kms.rotateKey({ keyId });
    const slow = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128f" });
    await createKey(kms, { algorithm: "ML-KEM-512" });
    for (const change of ["disableKey", "destroyKey"] as const)
      await kms[change]({ keyId: (await createKey(kms)).keyId });
    const all = await kms.exportPublicKeys({});
    expect(all.exported).toMatchObject([
      { keyId, name, version: 1, algorithm: "ML-DSA-44", status: "ROTATED" },
      { keyId: newKey?.keyId, name, version: 2, algorithm: "ML-DSA-44", status: "ACTIVE" },
      { keyId: slow.keyId, name: "", version: 0, algorithm: "SLH-DSA-SHA2-128f", status: "ACTIVE", kid: "" },
    ]);
    expect(all.keys.map(({ kid }) => kid)).toEqual(all.exported.slice(0, 2).map(({ kid }) => kid));
    for (const { $typeName: _, ...jwk } of all.keys) {
      expect(jwk).toMatchObject({ kty: "AKP", alg: "ML-DSA-44", use: "sig" });
      expect(await importJWK(jwk)).toMatchObject({ type: "public" });
      expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
    }
    const blocks = all.pem.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----\n/g) ?? [];
    expect(blocks.join("")).toBe(all.pem);
    expect(blocks).toEqual(all.exported.map(({ publicKeyPem }) => publicKeyPem));
    const verifying = blocks.filter((pem) => verify(null, data, createPublicKey(pem), signature));
    expect(verifying).toEqual([blocks[0]]);
    for (const [filter, size] of [
      [{ name }, 2],
      [{ label: "team=a" }, 2],
      [{ algorithm: "SLH-DSA-SHA2-128f" }, 1],
    ] as const)
      expect((await kms.exportPublicKeys(filter)).totalSize).toBe(size);
    const first = await kms.exportPublicKeys({ pageSize: 2 });
    const pageToken = first.nextPageToken;
    const rest = await kms.exportPublicKeys({ pageSize: 2, pageToken });
    expect([...first.exported, ...rest.exported]).toEqual(all.exported);
    expect(rest.nextPageToken).toBe("");
    expect(await refusal(kms.exportPublicKeys({ name, pageToken }))).toEqual(invalid("pageToken"));
    expect(await refusal(kms.listKeys({ pageToken }))).toEqual(invalid("pageToken"));
  });
});

describeKms("KmsService.RotateKey", ({ kms, shared }) => {
  it.each(["SLH-DSA-SHAKE-128f", "ML-KEM-768"])(
    "creates a new ACTIVE %s key in place of the old one, which becomes ROTATED",
    async (algorithm) => {
      const old = await createKey(kms, { algorithm, alias: "till" });
      const newKey = present((await kms.rotateKey({ keyId: old.keyId })).newKey);
      const { keyId, publicKey, createdAt } = newKey;
      expect(newKey).toMatchObject({
        ...{ alias: "till-rotated", algorithm, usage: old.usage, status: "ACTIVE" },
        publicKeyPem: expect.stringContaining("PUBLIC KEY"),
      });
      expect(keyId).not.toBe(old.keyId);
      expect(publicKey).not.toEqual(old.publicKey);
      expect(timestampMs(present(createdAt))).toBeGreaterThanOrEqual(timestampMs(present(old.createdAt)));
      expect((await kms.getKey({ keyId })).result).toMatchObject(newKey);
      expect((await kms.getKey({ keyId: old.keyId })).result).toMatchObject({ ...old, status: "ROTATED" });
    },
  );

  it("names the replacement of a rotated key: in GetKey, in lists, and when the old key is rejected", async () => {
    const { kms, keyId } = await withKey(shared());
    expect((await kms.getKey({ keyId })).result?.replacedBy).toBeUndefined();
    const { keyId: replacedBy } = present((await kms.rotateKey({ keyId })).newKey);
    expect((await kms.getKey({ keyId })).result).toMatchObject({ status: "ROTATED", replacedBy });
    const { keys } = await kms.listKeys({});
    expect(keys.find((key) => key.keyId === keyId)?.replacedBy).toBe(replacedBy);
    const failure = await failureOf(kms.sign({ keyId, data }));
    expect(failure.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({ replacedBy });
    expect((await kms.getKey({ keyId: replacedBy })).result?.replacedBy).toBeUndefined();
  });

  it("appends -rotated to the alias each time, until it has more than 255 characters", async () => {
    const aliases = [{ alias: "till" }, { alias: "a".repeat(255) }].map(async (fields) => {
      const { keyId } = await createKey(kms, fields);
      const second = present((await kms.rotateKey({ keyId })).newKey);
      return [second.alias, (await kms.rotateKey({ keyId: second.keyId })).newKey?.alias];
    });
    const long = `${"a".repeat(255)}-rotated`;
    expect(await Promise.all(aliases)).toEqual([
      ["till-rotated", "till-rotated-rotated"],
      [long, long],
    ]);
  });
});

describeKms("a refused call", ({ shared }) => {
  it("gives helpful advice: the replacement for new signatures only, and the public key for old ones", async () => {
    const { kms, keyId } = await withKey(shared());
    const signature = await sign(kms, { keyId, data });
    const messageOf = async (call: Promise<unknown>) => (await failureOf(call)).rawMessage;
    const publicKey = "verify with its public key, which GetKey returns";
    expect(await messageOf(kms.enableKey({ keyId }))).toBe(`key ${keyId} is already active`);
    await kms.disableKey({ keyId });
    expect(await messageOf(kms.disableKey({ keyId }))).toBe(`key ${keyId} is already disabled`);
    expect(await messageOf(kms.sign({ keyId, data }))).toMatch(/; enable it$/);
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toContain(`; enable it, or ${publicKey}`);
    await kms.enableKey({ keyId });
    const { keyId: next } = present((await kms.rotateKey({ keyId })).newKey);
    expect(await messageOf(kms.sign({ keyId, data }))).toContain(`; use ${next}`);
    await kms.destroyKey({ keyId, afterSeconds: 86_400 });
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toContain("; restore and enable it, or ");
    await kms.destroyKey({ keyId });
    const destroyed = `key ${keyId} is DESTROYED and does not allow VERIFY; ${publicKey}`;
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toBe(destroyed);
    expect(await messageOf(kms.rotateKey({ keyId }))).toMatch(/ROTATE$/);
    expect(await messageOf(kms.restoreKey({ keyId }))).toMatch(/ its secret key cannot be restored$/);
  });
});

describeKms("KmsService.DestroyKey", ({ start }) => {
  it("erases the sealed secret half of only this key, which GetHealth still counts", async () => {
    const { kms, store } = await start();
    const [key, other] = [await createKey(kms), await createKey(kms, { algorithm: "ML-KEM-512" })];
    await kms.destroyKey({ keyId: key.keyId });
    const sealed = await store.reader.selectFrom("sealed_secrets").select("identity").execute();
    const ofKeys = sealed.map(({ identity }) => identity).filter((identity) => identity.includes("key-"));
    expect(ofKeys).toEqual([`kms_keys/${other.keyId}/secret-key`]);
    await kms.rotateKey({ keyId: other.keyId });
    expect(await kms.getHealth({})).toMatchObject({ serviceStatus: "UP", keyCount: 3 });
  });
});

type State = KeyState | "unknown";

/** A key in a state, with what it produced while it was ACTIVE. */
interface Prepared {
  readonly keyId: string;
  readonly signature: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly sharedSecret: Uint8Array;
}

/** A call, the audit operation (undefined if it leaves no entry), and the states in which it succeeds. */
type Call = readonly [
  make: (kms: KmsClient, key: Prepared) => Promise<unknown>,
  operation: string | undefined,
  ...states: State[],
];

async function verifyValid(kms: KmsClient, { keyId, signature }: Prepared): Promise<void> {
  expect((await kms.verify({ keyId, data, signature })).result?.valid).toBe(true);
}

async function decapsulateSame(kms: KmsClient, { keyId, ciphertext, sharedSecret }: Prepared): Promise<void> {
  expect((await kms.decapsulate({ keyId, ciphertext })).result?.sharedSecret).toEqual(sharedSecret);
}

const signing: Record<string, Call> = {
  Sign: [(kms, { keyId }) => kms.sign({ keyId, data }), "SIGN", "ACTIVE"],
  SignStream: [(kms, { keyId }) => kms.signStream(signParts(keyId, data)), "SIGN", "ACTIVE"],
  BatchSign: [(kms, { keyId }) => kms.batchSign({ keyId, data: [data] }), "SIGN", "ACTIVE"],
  CreateCsr: [(kms, { keyId }) => kms.createCsr({ keyId, subject: "CN=release" }), "SIGN", "ACTIVE"],
  Verify: [verifyValid, "VERIFY", "ACTIVE", "ROTATED"],
};
const encapsulating: Record<string, Call> = {
  Encapsulate: [(kms, { keyId }) => kms.encapsulate({ keyId }), "ENCAPSULATE", "ACTIVE"],
  Decapsulate: [decapsulateSame, "DECAPSULATE", "ACTIVE", "ROTATED"],
};
const live: State[] = ["ACTIVE", "ROTATED", "DISABLED"];
const managing: Record<string, Call> = {
  GetKey: [(kms, { keyId }) => kms.getKey({ keyId }), undefined, ...live, "DESTROY_SCHEDULED", "DESTROYED"],
  RotateKey: [(kms, { keyId }) => kms.rotateKey({ keyId }), "ROTATE", "ACTIVE"],
  DisableKey: [(kms, { keyId }) => kms.disableKey({ keyId }), "DISABLE", "ACTIVE"],
  EnableKey: [(kms, { keyId }) => kms.enableKey({ keyId }), "ENABLE", "DISABLED"],
  "DestroyKey after a day": [
    (kms, { keyId }) => kms.destroyKey({ keyId, afterSeconds: 86_400 }),
    "SCHEDULE_DESTROY",
    ...live,
  ],
  RestoreKey: [(kms, { keyId }) => kms.restoreKey({ keyId }), "RESTORE", "DESTROY_SCHEDULED"],
  DestroyKey: [(kms, { keyId }) => kms.destroyKey({ keyId }), "DESTROY", ...live, "DESTROY_SCHEDULED"],
};

/** How a key gets into each state. */
const changes: Record<State, (kms: KmsClient, keyId: string) => Promise<unknown>> = {
  ACTIVE: async () => {},
  ROTATED: (kms, keyId) => kms.rotateKey({ keyId }),
  DISABLED: (kms, keyId) => kms.disableKey({ keyId }),
  DESTROY_SCHEDULED: (kms, keyId) => kms.destroyKey({ keyId, afterSeconds: 3600 }),
  DESTROYED: (kms, keyId) => kms.destroyKey({ keyId }),
  unknown: async () => {},
};

let unknownKeys = 0;

/** Creates a key, uses it, and brings it to a state. */
async function prepare(kms: KmsClient, algorithm: string, state: State): Promise<Prepared> {
  const { keyId } = await createKey(kms, { algorithm });
  const none = new Uint8Array();
  const {
    signature = none,
    ciphertext = none,
    sharedSecret = none,
  } = (algorithm === "ML-KEM-512" ? await kms.encapsulate({ keyId }) : await kms.sign({ keyId, data }))
    .result as Partial<Prepared>;
  await changes[state](kms, keyId);
  unknownKeys += 1;
  return {
    keyId: state === "unknown" ? `key-unknown-${process.pid}-${unknownKeys}` : keyId,
    ...{ signature, ciphertext, sharedSecret },
  };
}

describeKms("what a key does in each state:", ({ kms }) => {
  const tables = [
    { algorithm: "ML-DSA-44", calls: { ...signing, ...managing } },
    { algorithm: "ML-KEM-512", calls: encapsulating },
  ];
  describe.each(tables)("$algorithm:", ({ algorithm, calls }) => {
    for (const [name, [make, operation, ...states]] of Object.entries(calls)) {
      it.each(Object.keys(changes) as State[])(`${name} in the state %s`, async (state) => {
        const key = await prepare(kms, algorithm, state);
        const before = await readDeeds(kms, key.keyId);
        const refused = state === "unknown" ? { code: "NotFound", reason: "KEY_NOT_FOUND" } : stateRefuses;
        if (states.includes(state)) await make(kms, key);
        else {
          const failure = await failureOf(make(kms, key));
          expect(describeRefusal(failure)).toEqual(refused);
          expect(failure.rawMessage).toContain(key.keyId);
        }
        const outcome = states.includes(state) ? /OK / : new RegExp(`REFUSED reason=${refused.reason}$`);
        const deeds = (await readDeeds(kms, key.keyId)).slice(before.length);
        expect(deeds).toEqual(operation ? [expect.stringMatching(`^${operation} ${outcome.source}`)] : []);
      });
    }
  });
});

describeKms("key usages:", ({ shared }) => {
  const any = bytesOf("anything");
  for (const [algorithm, calls] of [
    ["ML-KEM-512", signing],
    ["ML-DSA-44", encapsulating],
    ["SLH-DSA-SHA2-128f", encapsulating],
  ] as const)
    it.each(Object.entries(calls))(`%s rejects the algorithm ${algorithm}`, async (_name, call) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const [make, operation] = call;
      const key = { keyId, signature: any, ciphertext: any, sharedSecret: any };
      expect(await refusal(make(kms, key))).toEqual(usageRefuses);
      const deeds = (await readDeeds(kms, keyId)).slice(1);
      expect(deeds).toEqual([`${operation} REFUSED reason=KEY_USAGE_MISMATCH`]);
    });
});

const day = 86_400;

/** Starts a server with a clock, which records what background work reports. */
async function startAt(start: (options: StartOptions) => Promise<KmsServer>) {
  const clock = createClock();
  const failures: BackgroundFailure[] = [];
  const overdue = new Map<string, readonly [items: number, oldestSeconds: number]>();
  const background = {
    started: () => {},
    failed: (failure: BackgroundFailure) => void failures.push(failure),
    overdue: (work: string, items: number, oldestSeconds: number) =>
      void overdue.set(work, [items, oldestSeconds]),
  };
  const server = await start({ now: clock.now, background });
  const statusOf = async (keyId: string) => (await server.kms.getKey({ keyId })).result?.status;
  const setState = (key_state: string, keyIds: readonly string[]) =>
    server.tamper((db) =>
      db.updateTable("kms_keys").set({ key_state }).where("key_id", "in", keyIds).execute(),
    );
  const passAndWork = async (seconds: number): Promise<void> => {
    clock.pass(seconds);
    await server.doDueWork();
  };
  return { ...server, ...clock, failures, overdue, statusOf, setState, passAndWork };
}

describeKms("a grant that has expired, and that no server has removed yet,", ({ start }) => {
  const as = (user: string) => ({ headers: { authorization: `Bearer ${user}` } });

  /** Starts a server with a grant of ada's key to bob that is in force for a minute. */
  async function startWithGrant() {
    const server = await startAt((options) => start({ ...options, auth: "token" }));
    const { kms, now } = server;
    const keyId = present((await kms.createKey({ algorithm: "ML-DSA-44" }, as("ada"))).result).keyId;
    const expiresAt = timestampFromMs(now().getTime() + 60_000);
    const grant = { keyId, grantee: "bob", operations: ["SIGN"], expiresAt };
    const { grantId } = present((await kms.createGrant(grant, as("ada"))).grant);
    return { ...server, keyId, grantId };
  }

  it("allows nothing, and is not listed", async () => {
    const { kms, pass, keyId } = await startWithGrant();
    pass(59);
    await kms.sign({ keyId, data }, as("bob"));
    expect((await kms.listGrants({}, as("ada"))).grants).toHaveLength(1);
    pass(1);
    expect(await refusal(kms.sign({ keyId, data }, as("bob")))).toMatchObject({ reason: "KEY_NOT_FOUND" });
    expect((await kms.listGrants({}, as("ada"))).grants).toEqual([]);
    expect((await kms.listGrants({ received: true }, as("bob"))).grants).toEqual([]);
  });

  it("allows no use that began before", async () => {
    const { store, now, pass, grantId } = await startWithGrant();
    const use = { grantId, isOfName: false, operation: "SIGN" } as const;
    const isInForce = await createGrantStore(store, now).checkUses([use], store.reader);
    expect(isInForce(use)).toBe(true);
    pass(60);
    expect(isInForce(use)).toBe(false);
  });
});

describeKms("a scheduled destruction", ({ start }) => {
  it("destroys a key once when due, with one entry", async () => {
    const server = await withKey(startAt(start));
    const { kms, keyId } = server;
    const answer = await kms.destroyKey({ keyId, afterSeconds: day });
    expect(answer).toMatchObject({ newStatus: "DESTROY_SCHEDULED", destroyAt: { seconds: 1_795_514_400n } });
    await server.passAndWork(day - 1);
    expect(await server.statusOf(keyId)).toBe("DESTROY_SCHEDULED");
    await server.passAndWork(1);
    await server.doDueWork();
    expect(await server.statusOf(keyId)).toBe("DESTROYED");
    expect(await readDeeds(kms, keyId)).toEqual([
      expect.stringMatching(/^CREATE OK /),
      "SCHEDULE_DESTROY OK stateBefore=ACTIVE, destroyAt=2026-11-24T10:00:00.000Z",
      "DESTROY OK stateBefore=DESTROY_SCHEDULED",
    ]);
    const [last] = (await readAudit(kms, keyId)).slice(-1);
    expect(last).toMatchObject({ user: "schedule", clientAddress: "", requestId: "" });
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true });
  });

  it("is cancelled with RestoreKey; the key is then disabled", async () => {
    const server = await startAt(start);
    const { kms } = server;
    const key = await createKey(kms);
    const { keyId } = key;
    await kms.destroyKey({ keyId, afterSeconds: day });
    expect((await kms.restoreKey({ keyId })).result).toMatchObject({ keyId, status: "DISABLED" });
    expect((await kms.getKey({ keyId })).result?.destroyAt).toBeUndefined();
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
    await server.passAndWork(2 * day);
    expect((await kms.enableKey({ keyId })).result?.status).toBe("ACTIVE");
    expect(verifiesOutside(key, data, await sign(kms, { keyId, data }))).toBe(true);
  });

  it("cannot be cancelled once it is due, even if no server has destroyed the key yet", async () => {
    const server = await withKey(startAt(start));
    const { kms, pass, keyId } = server;
    await kms.destroyKey({ keyId, afterSeconds: 1 });
    pass(1);
    expect(await refusal(kms.restoreKey({ keyId }))).toEqual(stateRefuses);
    await server.doDueWork();
    expect(await server.statusOf(keyId)).toBe("DESTROYED");
  });

  it("acts once for each of 64 keys when two servers race, and one is killed and restarted", async () => {
    const one = await startAt(start);
    const other = await startKmsServer({ database: one.database, now: one.now });
    const keys = await Promise.all(Array.from({ length: 64 }, () => createKey(one.kms)));
    await Promise.all(keys.map(({ keyId }) => one.kms.destroyKey({ keyId, afterSeconds: 60 })));
    one.pass(60);
    const racing = [one.doDueWork(), other.doDueWork(), one.doDueWork(), other.doDueWork()];
    await Promise.allSettled(racing);
    const third = await startKmsServer({ database: one.database, now: one.now });
    await third.doDueWork();
    const entries = (await readAudit(third.kms)).filter(({ operation }) => operation === "DESTROY");
    expect(entries.map(({ keyId }) => keyId).sort()).toEqual(keys.map(({ keyId }) => keyId).sort());
    expect((await third.kms.listKeys({ status: "DESTROYED" })).totalSize).toBe(64);
  });

  it("of a rotated key never lets it sign again, even if it is restored and enabled", async () => {
    const { kms, keyId } = await withKey(start({}));
    const { newKey } = await kms.rotateKey({ keyId });
    await kms.destroyKey({ keyId, afterSeconds: day });
    await kms.restoreKey({ keyId });
    const { result } = await kms.enableKey({ keyId });
    expect(result).toMatchObject({ status: "ROTATED", replacedBy: newKey?.keyId });
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
  });
});

describeKms("a scheduled rotation", ({ start }) => {
  it("creates the next version when due, and is due again a period later", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    const made = await createKey(kms, { name: "yearly", rotationPeriodSeconds: day });
    expect(made).toMatchObject({ rotationPeriodSeconds: day });
    for (const version of [2, 3]) {
      await server.passAndWork(day - 1);
      pass(1);
      await Promise.all([server.doDueWork(), server.doDueWork()]);
      const { result, versions } = await kms.getKey({ keyId: "name/yearly" });
      expect(result).toMatchObject({ version, isPrimary: true, rotationPeriodSeconds: day });
      expect(versions).toHaveLength(version);
      expect(versions[0]).not.toHaveProperty("nextRotationAt");
    }
    const deeds = (await readAudit(kms, "name/yearly")).filter(({ operation }) => operation === "ROTATE");
    expect(deeds).toMatchObject(Array(2).fill({ user: "schedule", outcome: "OK" }));
  });

  it("waits for a disabled key, logs that once an hour, and follows when the key is enabled", async () => {
    const server = await startAt(start);
    const { kms } = server;
    await createKey(kms, { name: "paused", rotationPeriodSeconds: day });
    await kms.disableKey({ keyId: "name/paused" });
    await server.passAndWork(day);
    await server.doDueWork();
    const refused = (await readDeeds(kms, "name/paused")).slice(2);
    expect(refused).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    await kms.enableKey({ keyId: "name/paused" });
    await server.passAndWork(3600);
    expect((await kms.getKey({ keyId: "name/paused" })).result?.version).toBe(2);
  });

  it("ends when the key is destroyed", async () => {
    const server = await startAt(start);
    const { kms } = server;
    await createKey(kms, { name: "gone", rotationPeriodSeconds: day });
    await kms.destroyKey({ keyId: "name/gone" });
    for (const seconds of [day, 3600, 3600]) await server.passAndWork(seconds);
    const deeds = (await readDeeds(kms, "name/gone")).filter((deed) => deed.startsWith("ROTATE"));
    expect(deeds).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    expect((await kms.getKey({ keyId: "name/gone" })).result?.nextRotationAt).toBeUndefined();
  });
});

describeKms("scheduled work that fails", ({ start }) => {
  it("does not block the destruction of a key behind 70 damaged ones, and succeeds after their repair", async () => {
    const server = await startAt(start);
    const { kms, failures, overdue, pass } = server;
    const keys = await Promise.all(Array.from({ length: 71 }, () => createKey(kms)));
    const [last = "", ...damaged] = keys.map(({ keyId }) => keyId);
    await Promise.all(damaged.map((keyId) => kms.destroyKey({ keyId, afterSeconds: 60 })));
    await kms.destroyKey({ keyId: last, afterSeconds: 61 });
    // Other states have no destruction time, so the server cannot know what was intended.
    await server.setState("ACTIVE", damaged);
    pass(61);
    for (let call = 0; call < 3; call += 1) await server.doDueWork();
    expect(await server.statusOf(last)).toBe("DESTROYED");
    expect(failures.map(({ about }) => about?.keyId).sort()).toEqual([...damaged].sort());
    const keyId = failures[0]?.about?.keyId ?? "";
    expect(failures[0]).toMatchObject({
      ...{ work: "kms_destroy", about: { keyId, operation: "DESTROY" } },
      error: { message: expect.stringContaining(`the stored key ${keyId} was changed`) },
    });
    pass(100);
    await server.reportOverdue();
    expect(overdue.get("kms_destroy")).toEqual([70, 101]);
    expect(overdue.get("kms_rotate")).toEqual([0, 0]);
    await server.setState("DESTROY_SCHEDULED", damaged);
    for (let call = 0; call < 3; call += 1) await server.doDueWork();
    expect((await kms.listKeys({ status: "DESTROYED" })).totalSize).toBe(71);
    expect(failures).toHaveLength(70);
  });

  it("for one unreadable table does not stop work for another", async () => {
    const server = await startAt(start);
    const { keyId } = await createKey(server.kms);
    await server.kms.destroyKey({ keyId, afterSeconds: 60 });
    const rename = (from: "kms_grants", to: string) =>
      server.tamper((db) => db.schema.alterTable(from).renameTo(to).execute());
    await rename("kms_grants", "kms_grants_away");
    await expect(server.passAndWork(60)).rejects.toThrow();
    await rename("kms_grants_away" as "kms_grants", "kms_grants");
    expect(await server.statusOf(keyId)).toBe("DESTROYED");
  });
});

/** 64 KB in UTF-8. */
const labels = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`label-${i}`, "🔑".repeat(255)]));
const versions = 60;
/** The message limit of many clients. */
const clientLimit = 4 * 1024 * 1024;

describeKms("a name with large labels and many versions", ({ start }) => {
  it("is returned and listed in responses that every client accepts", async () => {
    const { kms } = await start();
    const name = "large";
    await kms.createKey({ algorithm: "ML-KEM-512", usage: "KEM", name, labels });
    for (let count = 1; count < versions; count += 1) await kms.rotateKey({ keyId: `name/${name}` });
    const shown = await kms.getKey({ keyId: `name/${name}` });
    expect(Buffer.byteLength(toJsonString(GetKeyResponseSchema, shown))).toBeLessThan(200_000);
    expect(present(shown.result).labels).toEqual(labels);
    expect(shown.versions.map(({ version, labels }) => [version, labels])).toEqual(
      Array.from({ length: versions }, (_, i) => [i + 1, {}]),
    );
    for (const filter of [{}, { name }]) {
      const listed: number[] = [];
      for (let pageToken = ""; listed.length === 0 || pageToken !== ""; ) {
        const page = await kms.listKeys({ ...filter, pageToken });
        expect(Buffer.byteLength(toJsonString(ListKeysResponseSchema, page))).toBeLessThan(clientLimit);
        expect(page.keys.every((key) => Object.keys(key.labels).length === 64)).toBe(true);
        listed.push(...page.keys.map(({ version }) => version ?? 0));
        pageToken = page.nextPageToken;
      }
      expect(listed).toEqual(Array.from({ length: versions }, (_, i) => i + 1));
    }
  });
});
