import { describe, expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { describeRefusal, failureOf, refusal } from "../../support/refusal.ts";
import { stateRefuses, usageRefuses } from "../../support/refusals.ts";
import type { State as KeyState } from "./key-states.ts";
import { createKey, describeKms, type KmsClient, readDeeds, withKey } from "./kms-server.ts";
import { signParts } from "./sign-parts.ts";

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

const data = bytesOf("hello");

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

describeKms("what a key does in each state:", (_start, shared) => {
  const tables = [
    { algorithm: "ML-DSA-44", calls: { ...signing, ...managing } },
    { algorithm: "ML-KEM-512", calls: encapsulating },
  ];
  describe.each(tables)("$algorithm:", ({ algorithm, calls }) => {
    for (const [name, [make, operation, ...states]] of Object.entries(calls)) {
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
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const [make, operation] = call;
      const key = { keyId, signature: any, ciphertext: any, sharedSecret: any };
      expect(await refusal(make(kms, key))).toEqual(usageRefuses);
      const deeds = (await readDeeds(kms, keyId)).slice(1);
      expect(deeds).toEqual([`${operation} REFUSED reason=KEY_USAGE_MISMATCH`]);
    });
});
