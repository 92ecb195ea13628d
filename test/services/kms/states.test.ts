import { describe, expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { describeRefusal, failureOf } from "../../support/refusal.ts";
import { stateRefuses, usageRefuses } from "../../support/refusals.ts";
import { createKey, describeKms, type KmsClient, readDeeds } from "./kms-server.ts";
import { signParts } from "./sign-parts.ts";

type State = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED" | "unknown";

/** A key in a state, with what it produced while it was ACTIVE. */
interface Prepared {
  readonly keyId: string;
  readonly signature: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly sharedSecret: Uint8Array;
}

interface Call {
  readonly make: (kms: KmsClient, key: Prepared) => Promise<unknown>;
  /** Its name in the audit log; undefined if it leaves no entry. */
  readonly operation: string | undefined;
  /** The states in which it succeeds; in all others it is refused. */
  readonly states: readonly State[];
}

const data = bytesOf("hello");

function call(make: Call["make"], operation: string | undefined, ...states: State[]): Call {
  return { make, operation, states };
}

const signing: Record<string, Call> = {
  Sign: call((kms, { keyId }) => kms.sign({ keyId, data }), "SIGN", "ACTIVE"),
  SignStream: call((kms, { keyId }) => kms.signStream(signParts(keyId, data)), "SIGN", "ACTIVE"),
  BatchSign: call((kms, { keyId }) => kms.batchSign({ keyId, data: [data] }), "SIGN", "ACTIVE"),
  CreateCsr: call((kms, { keyId }) => kms.createCsr({ keyId, subject: "CN=release" }), "SIGN", "ACTIVE"),
  Verify: call(
    async (kms, { keyId, signature }) => {
      const { result } = await kms.verify({ keyId, data, signature });
      expect(result?.valid).toBe(true);
    },
    "VERIFY",
    "ACTIVE",
    "ROTATED",
  ),
};
const encapsulating: Record<string, Call> = {
  Encapsulate: call((kms, { keyId }) => kms.encapsulate({ keyId }), "ENCAPSULATE", "ACTIVE"),
  Decapsulate: call(
    async (kms, { keyId, ciphertext, sharedSecret }) => {
      const { result } = await kms.decapsulate({ keyId, ciphertext });
      expect(result?.sharedSecret).toEqual(sharedSecret);
    },
    "DECAPSULATE",
    "ACTIVE",
    "ROTATED",
  ),
};
const managing: Record<string, Call> = {
  GetKey: call(
    (kms, { keyId }) => kms.getKey({ keyId }),
    undefined,
    "ACTIVE",
    "ROTATED",
    "DISABLED",
    "DESTROY_SCHEDULED",
    "DESTROYED",
  ),
  RotateKey: call((kms, { keyId }) => kms.rotateKey({ keyId }), "ROTATE", "ACTIVE"),
  DisableKey: call((kms, { keyId }) => kms.disableKey({ keyId }), "DISABLE", "ACTIVE"),
  EnableKey: call((kms, { keyId }) => kms.enableKey({ keyId }), "ENABLE", "DISABLED"),
  "DestroyKey after a day": call(
    (kms, { keyId }) => kms.destroyKey({ keyId, afterSeconds: 86_400 }),
    "SCHEDULE_DESTROY",
    "ACTIVE",
    "ROTATED",
    "DISABLED",
  ),
  RestoreKey: call((kms, { keyId }) => kms.restoreKey({ keyId }), "RESTORE", "DESTROY_SCHEDULED"),
  DestroyKey: call(
    (kms, { keyId }) => kms.destroyKey({ keyId }),
    "DESTROY",
    "ACTIVE",
    "ROTATED",
    "DISABLED",
    "DESTROY_SCHEDULED",
  ),
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

describeKms("what a key does in each state:", (_start, shared) => {
  const tables = [
    { algorithm: "ML-DSA-44", calls: { ...signing, ...managing } },
    { algorithm: "ML-KEM-512", calls: encapsulating },
  ];
  describe.each(tables)("$algorithm:", ({ algorithm, calls }) => {
    for (const [name, { make, operation, states }] of Object.entries(calls)) {
      it.each(Object.keys(changes) as State[])(`${name} in the state %s`, async (state) => {
        const { kms } = await shared();
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

describeKms("key usages:", (_start, shared) => {
  const any = bytesOf("anything");
  for (const [algorithm, calls] of [
    ["ML-KEM-512", signing],
    ["ML-DSA-44", encapsulating],
    ["SLH-DSA-SHA2-128f", encapsulating],
  ] as const)
    it.each(Object.entries(calls))(`%s rejects the algorithm ${algorithm}`, async (_name, call) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const key = { keyId, signature: any, ciphertext: any, sharedSecret: any };
      expect(describeRefusal(await failureOf(call.make(kms, key)))).toEqual(usageRefuses);
      expect((await readDeeds(kms, keyId)).slice(1)).toEqual([
        `${call.operation} REFUSED reason=KEY_USAGE_MISMATCH`,
      ]);
    });
});
