/** The chapter of a contract story in which calls are refused. */
import { describe, expect, it } from "vitest";
import { type Refusal, refusal } from "../support/refusal.ts";
import { fieldInvalid, keyInvalid, lengthInvalid } from "../support/refusals.ts";
import type { DappClient } from "./dapp-story.ts";

const data = Buffer.from("attack at dawn");
/** A point of the curve: the generator of P-256 (SP 800-186, section 3.2.1.3). */
const generator = Buffer.from(
  "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296" +
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
  "hex",
);
/** Of the right lengths; it verifies nothing. */
const pair = {
  data,
  ecdsaSignature: new Uint8Array(64),
  mldsaSignature: new Uint8Array(3309),
  ecdsaPublicKey: generator,
  mldsaPublicKey: new Uint8Array(1952),
};
const compositeSignature = new Uint8Array(3380);
const compositePublicKey = Buffer.concat([pair.mldsaPublicKey, generator]);

type MakeCall = (service: DappClient) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: Refusal])[] = [
  ["a contract without code", (service) => service.deployContract({ name: "x" }), fieldInvalid],
  ["to sign nothing", (service) => service.dualSign({}), fieldInvalid],
  [
    "a pair and a composite",
    (service) => service.dualVerify({ ...pair, compositeSignature, compositePublicKey }),
    fieldInvalid,
  ],
  [
    "an ECDSA signature of an impossible length",
    (service) => service.dualVerify({ ...pair, ecdsaSignature: new Uint8Array(73) }),
    lengthInvalid,
  ],
  [
    "an ML-DSA signature of an impossible length",
    (service) => service.dualVerify({ ...pair, mldsaSignature: new Uint8Array(3308) }),
    lengthInvalid,
  ],
  [
    "a point that is not on the curve",
    (service) => service.dualVerify({ ...pair, ecdsaPublicKey: Buffer.alloc(65, 4) }),
    keyInvalid,
  ],
  [
    "a composite key without a point",
    (service) => service.dualVerify({ data, compositeSignature, compositePublicKey: new Uint8Array(2017) }),
    keyInvalid,
  ],
  [
    "the page token of another list",
    (service) =>
      service.listContracts({ pageToken: Buffer.from("1.0123456789abcdef").toString("base64url") }),
    fieldInvalid,
  ],
];

export function tellOfRefusals(service: DappClient): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(service))).toEqual(expected);
    });
  });
}
