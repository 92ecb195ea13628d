/** The chapter of a token story in which calls are refused. */
import { describe, expect, it } from "vitest";
import { type Refusal, refusal } from "../support/refusal.ts";
import { fieldInvalid, keyInvalid, lengthInvalid } from "../support/refusals.ts";
import type { NftClient, Stage } from "./nft-story.ts";

/** No service has this token; its name needs care in a path, in a query and in JSON. */
const tokenId = 'no such/token? "é" & 100%+😀';

const newOwner = `0x${"ab".repeat(20)}`;
/** Of the right lengths; it verifies nothing. */
const signed = {
  metadataHash: "0".repeat(64),
  creatorSignature: new Uint8Array(3309),
  creatorPublicKey: new Uint8Array(1952),
};

const notFound = { code: "NotFound", reason: "TOKEN_NOT_FOUND" };

type MakeCall = (service: NftClient) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: Refusal])[] = [
  ["to describe a token that is not there", (service) => service.getToken({ tokenId }), notFound],
  [
    "to tell the history of a token that is not there",
    (service) => service.getHistory({ tokenId }),
    notFound,
  ],
  ["to give away a token that is not there", (service) => service.transfer({ tokenId, newOwner }), notFound],
  ["a token without a name", (service) => service.mint({ description: "oil on canvas" }), fieldInvalid],
  [
    "an owner whose address is a digit too short",
    (service) => service.transfer({ tokenId, newOwner: newOwner.slice(0, -1) }),
    fieldInvalid,
  ],
  ["to verify a token and a signature", (service) => service.verify({ tokenId, ...signed }), fieldInvalid],
  [
    "a signature of an impossible length",
    (service) => service.verify({ ...signed, creatorSignature: new Uint8Array(3308) }),
    lengthInvalid,
  ],
  [
    "a key of an impossible length",
    (service) => service.verify({ ...signed, creatorPublicKey: new Uint8Array(1951) }),
    keyInvalid,
  ],
];

export function tellOfRefusals({ service }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(service))).toEqual(expected);
    });
  });
}
