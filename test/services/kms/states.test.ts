import { describe, expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { describeRefusal, failureOf } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, readDeeds } from "./kms-server.ts";

type State = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED" | "unknown";

/** A key in a state, with what it produced while it was ACTIVE. */
interface Prepared {
  readonly keyId: string;
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly sharedSecret: Uint8Array;
}

type Call = (kms: KmsClient, key: Prepared) => Promise<unknown>;

async function* streamOf(keyId: string, data: Uint8Array) {
  yield { part: { case: "header", value: { keyId } } } as const;
  yield { part: { case: "chunk", value: data } } as const;
}

const signing: Record<string, Call> = {
  Sign: (kms, { keyId, data }) => kms.sign({ keyId, data }),
  SignStream: (kms, { keyId, data }) => kms.signStream(streamOf(keyId, data)),
  BatchSign: (kms, { keyId, data }) => kms.batchSign({ keyId, data: [data] }),
  CreateCsr: (kms, { keyId }) => kms.createCsr({ keyId, subject: "CN=release" }),
  Verify: async (kms, { keyId, data, signature }) => {
    const { result } = await kms.verify({ keyId, data, signature });
    expect(result?.valid).toBe(true);
  },
};
const encapsulating: Record<string, Call> = {
  Encapsulate: (kms, { keyId }) => kms.encapsulate({ keyId }),
  Decapsulate: async (kms, { keyId, ciphertext, sharedSecret }) => {
    const { result } = await kms.decapsulate({ keyId, ciphertext });
    expect(result?.sharedSecret).toEqual(sharedSecret);
  },
};
const managing: Record<string, Call> = {
  GetKey: (kms, { keyId }) => kms.getKey({ keyId }),
  RotateKey: (kms, { keyId }) => kms.rotateKey({ keyId }),
  DisableKey: (kms, { keyId }) => kms.disableKey({ keyId }),
  EnableKey: (kms, { keyId }) => kms.enableKey({ keyId }),
  "DestroyKey after a day": (kms, { keyId }) => kms.destroyKey({ keyId, afterSeconds: 86_400 }),
  RestoreKey: (kms, { keyId }) => kms.restoreKey({ keyId }),
  DestroyKey: (kms, { keyId }) => kms.destroyKey({ keyId }),
};

/** The states in which a call succeeds; in all others it is refused. */
const allowed: Record<string, readonly State[]> = {
  Sign: ["ACTIVE"],
  SignStream: ["ACTIVE"],
  BatchSign: ["ACTIVE"],
  CreateCsr: ["ACTIVE"],
  Verify: ["ACTIVE", "ROTATED"],
  Encapsulate: ["ACTIVE"],
  Decapsulate: ["ACTIVE", "ROTATED"],
  GetKey: ["ACTIVE", "ROTATED", "DISABLED", "DESTROY_SCHEDULED", "DESTROYED"],
  RotateKey: ["ACTIVE"],
  DisableKey: ["ACTIVE"],
  EnableKey: ["DISABLED"],
  "DestroyKey after a day": ["ACTIVE", "ROTATED", "DISABLED"],
  RestoreKey: ["DESTROY_SCHEDULED"],
  DestroyKey: ["ACTIVE", "ROTATED", "DISABLED", "DESTROY_SCHEDULED"],
};
/** Operation names in the audit log; GetKey leaves no entry. */
const operations: Record<string, string> = {
  Sign: "SIGN",
  SignStream: "SIGN",
  BatchSign: "SIGN",
  CreateCsr: "SIGN",
  Verify: "VERIFY",
  Encapsulate: "ENCAPSULATE",
  Decapsulate: "DECAPSULATE",
  RotateKey: "ROTATE",
  DisableKey: "DISABLE",
  EnableKey: "ENABLE",
  "DestroyKey after a day": "SCHEDULE_DESTROY",
  RestoreKey: "RESTORE",
  DestroyKey: "DESTROY",
};
const states: readonly State[] = [
  "ACTIVE",
  "ROTATED",
  "DISABLED",
  "DESTROY_SCHEDULED",
  "DESTROYED",
  "unknown",
];

const refusals = {
  unknown: { code: "NotFound", reason: "KEY_NOT_FOUND" },
  other: { code: "FailedPrecondition", reason: "KEY_STATE_INVALID" },
};

let unknownKeys = 0;

/** Creates a key, uses it, and brings it to a state. */
async function prepare(kms: KmsClient, algorithm: string, state: State): Promise<Prepared> {
  const { keyId } = await createKey(kms, { algorithm });
  const data = bytesOf("hello");
  const isKem = algorithm.startsWith("ML-KEM");
  const signed = isKem ? undefined : (await kms.sign({ keyId, data })).result;
  const encapsulated = isKem ? (await kms.encapsulate({ keyId })).result : undefined;
  if (state === "ROTATED") await kms.rotateKey({ keyId });
  if (state === "DISABLED") await kms.disableKey({ keyId });
  if (state === "DESTROY_SCHEDULED") await kms.destroyKey({ keyId, afterSeconds: 3600 });
  if (state === "DESTROYED") await kms.destroyKey({ keyId });
  unknownKeys += 1;
  return {
    keyId: state === "unknown" ? `key-unknown-${process.pid}-${unknownKeys}` : keyId,
    data,
    signature: signed?.signature ?? new Uint8Array(),
    ciphertext: encapsulated?.ciphertext ?? new Uint8Array(),
    sharedSecret: encapsulated?.sharedSecret ?? new Uint8Array(),
  };
}

describeKms("what a key does in each state:", (_start, shared) => {
  const tables = [
    { algorithm: "ML-DSA-44", calls: { ...signing, ...managing } },
    { algorithm: "ML-KEM-512", calls: { ...encapsulating, ...managing } },
  ];
  describe.each(tables)("$algorithm:", ({ algorithm, calls }) => {
    for (const [name, call] of Object.entries(calls)) {
      for (const state of states) {
        const operation = operations[name];
        if (present(allowed[name]).includes(state)) {
          it(`${name} accepts a key in the state ${state}`, async () => {
            const { kms } = await shared();
            const key = await prepare(kms, algorithm, state);
            const before = await readDeeds(kms, key.keyId);
            await call(kms, key);
            const deeds = (await readDeeds(kms, key.keyId)).slice(before.length);
            expect(deeds).toEqual(operation ? [expect.stringMatching(`^${operation} OK `)] : []);
          });
        } else {
          const expected = state === "unknown" ? refusals.unknown : refusals.other;
          it(`${name} rejects a key in the state ${state}: ${expected.code}, ${expected.reason}`, async () => {
            const { kms } = await shared();
            const key = await prepare(kms, algorithm, state);
            const before = await readDeeds(kms, key.keyId);
            const failure = await failureOf(call(kms, key));
            expect(describeRefusal(failure)).toEqual(expected);
            expect(failure.rawMessage).toContain(key.keyId);
            const deeds = (await readDeeds(kms, key.keyId)).slice(before.length);
            expect(deeds).toEqual(operation ? [`${operation} REFUSED reason=${expected.reason}`] : []);
          });
        }
      }
    }
  });
});

describeKms("key usages:", (_start, shared) => {
  const wrong = { code: "FailedPrecondition", reason: "KEY_USAGE_MISMATCH" };
  for (const [algorithm, calls] of [
    ["ML-KEM-512", { ...signing, Verify: verifyAnything }],
    ["ML-DSA-44", { ...encapsulating, Decapsulate: decapsulateAnything }],
    ["SLH-DSA-SHA2-128f", { ...encapsulating, Decapsulate: decapsulateAnything }],
  ] as const) {
    for (const [name, call] of Object.entries(calls)) {
      it(`${name} rejects the algorithm ${algorithm}`, async () => {
        const { kms } = await shared();
        const { keyId } = await createKey(kms, { algorithm });
        const key = { keyId, data: bytesOf("hello"), signature: any, ciphertext: any, sharedSecret: any };
        expect(describeRefusal(await failureOf(call(kms, key)))).toEqual(wrong);
        expect((await readDeeds(kms, keyId)).slice(1)).toEqual([
          `${operations[name]} REFUSED reason=KEY_USAGE_MISMATCH`,
        ]);
      });
    }
  }
});

const any = bytesOf("anything");

function verifyAnything(kms: KmsClient, { keyId, data, signature }: Prepared) {
  return kms.verify({ keyId, data, signature });
}

function decapsulateAnything(kms: KmsClient, { keyId, ciphertext }: Prepared) {
  return kms.decapsulate({ keyId, ciphertext });
}
