/** The chapter of a story in which calls are refused. */
import { describe, expect, it } from "vitest";
import type { ChainClient } from "../services/chain.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";
import type { Stage } from "./blockchain-story.ts";

const data = bytesOf("5 from ada to bob");
const nobody = `0x${"0".repeat(40)}`;
const { code, reason } = invalid();
const fieldInvalid = { code, reason };
const notFound = { code: "NotFound", reason: "VALIDATOR_NOT_FOUND" };

type MakeCall = (chain: ChainClient) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: object])[] = [
  ["a validator whose name has two lines", (chain) => chain.registerNode({ name: "a\nb" }), fieldInvalid],
  ["a block of more than 64 KiB", (chain) => chain.addBlock({ data: new Uint8Array(65_537) }), fieldInvalid],
  [
    "a block of a validator that is not there",
    (chain) => chain.addBlock({ data, validatorAddress: nobody }),
    notFound,
  ],
  ["a peer without a port", (chain) => chain.connectPeer({ address: "127.0.0.1" }), fieldInvalid],
  ["a page token that no server gave", (chain) => chain.listPeers({ pageToken: "ä&b" }), fieldInvalid],
];

export function tellOfRefusals({ chain }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(chain))).toEqual(expected);
    });
  });
}
