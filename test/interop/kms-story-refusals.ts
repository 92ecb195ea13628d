/** The chapter of a story in which calls are refused. */
import { describe, expect, it } from "vitest";
import { type Refusal, refusal } from "../support/refusal.ts";
import { fieldInvalid, lengthInvalid, usageRefuses } from "../support/refusals.ts";
import type { KmsClient, Stage } from "./kms-story.ts";

const data = Buffer.from("hello");
const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };

/** @param idOf gives the keyId of a key of the story; of no key, without a name */
type MakeCall = (kms: KmsClient, idOf: (name?: string) => string) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: Refusal])[] = [
  ["an unknown algorithm", (kms) => kms.createKey({ algorithm: "RSA" }), fieldInvalid],
  [
    "a usage that the algorithm is not for",
    (kms) => kms.createKey({ algorithm: "ML-DSA-65", usage: "KEM" }),
    fieldInvalid,
  ],
  ["a call without a keyId", (kms) => kms.sign({ data }), fieldInvalid],
  ["neither data nor mu", (kms, idOf) => kms.sign({ keyId: idOf("letter 1") }), fieldInvalid],
  ["a page of 1001 keys", (kms) => kms.listKeys({ pageSize: 1001 }), fieldInvalid],
  [
    "a signature of an impossible length",
    (kms, idOf) => kms.verify({ keyId: idOf("letter 1"), data, signature: data }),
    lengthInvalid,
  ],
  [
    "a ciphertext of an impossible length",
    (kms, idOf) => kms.decapsulate({ keyId: idOf("new secrets"), ciphertext: data }),
    lengthInvalid,
  ],
  ["to describe a key that is not there", (kms, idOf) => kms.getKey({ keyId: idOf() }), notFound],
  ["to sign with a key that is not there", (kms, idOf) => kms.sign({ keyId: idOf(), data }), notFound],
  ["to destroy a key that is not there", (kms, idOf) => kms.destroyKey({ keyId: idOf() }), notFound],
  ["to sign with a KEM key", (kms, idOf) => kms.sign({ keyId: idOf("new secrets"), data }), usageRefuses],
  [
    "to encapsulate with a key that signs",
    (kms, idOf) => kms.encapsulate({ keyId: idOf("letter 1") }),
    usageRefuses,
  ],
  [
    "to sign a mu with SLH-DSA",
    (kms, idOf) => kms.sign({ keyId: idOf("parcels"), mu: new Uint8Array(64) }),
    usageRefuses,
  ],
];

export function tellOfRefusals({ kms, key, unknownKeyId }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      const idOf = (name?: string) => (name === undefined ? unknownKeyId : key(name).keyId);
      expect(await refusal(call(kms, idOf))).toEqual(expected);
    });
  });
}
