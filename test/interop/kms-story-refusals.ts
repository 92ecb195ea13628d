/** The chapter of a story in which calls are refused. */
import { describe, expect, it } from "vitest";
import { type Refusal, refusal } from "../support/refusal.ts";
import { fieldInvalid, lengthInvalid, usageRefuses } from "../support/refusals.ts";
import type { KmsClient, Stage } from "./kms-story.ts";

/** No service has this key; its name needs care in a path, in a query and in JSON. */
export const unknownKeyId = 'no such/key? "é" & 100%+😀';

const data = Buffer.from("hello");
const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };

/** @param idOf gives the keyId of a key of the story */
type MakeCall = (kms: KmsClient, idOf: (name: string) => string) => Promise<unknown>;

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
  ["to describe a key that is not there", (kms) => kms.getKey({ keyId: unknownKeyId }), notFound],
  ["to sign with a key that is not there", (kms) => kms.sign({ keyId: unknownKeyId, data }), notFound],
  ["to destroy a key that is not there", (kms) => kms.destroyKey({ keyId: unknownKeyId }), notFound],
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

export function tellOfRefusals({ kms, key }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(kms, (name) => key(name).keyId))).toEqual(expected);
    });
  });
}
