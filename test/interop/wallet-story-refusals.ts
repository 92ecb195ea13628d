/** The chapter of a wallet story in which calls are refused. */
import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Refusal, refusal } from "../support/refusal.ts";
import { fieldInvalid, keyInvalid, lengthInvalid } from "../support/refusals.ts";
import type { Stage, WalletClient } from "./wallet-story.ts";

/** No service has this wallet; its name needs care in a path and in JSON. */
const unknownWalletId = 'no such/wallet? "é" & 100%+😀';

const data = Buffer.from("pay 5 to bob");
const signature = new Uint8Array(3309);
const publicKey = new Uint8Array(1952);
const publicKeyPemOf44 = generateKeyPairSync("ml-dsa-44").publicKey.export({ format: "pem", type: "spki" });

const notFound = { code: "NotFound", reason: "WALLET_NOT_FOUND" };

/** @param walletId of a wallet of the story */
type MakeCall = (service: WalletClient, walletId: string) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: Refusal])[] = [
  [
    "to sign with a wallet that is not there",
    (service) => service.signTransaction({ walletId: unknownWalletId, data }),
    notFound,
  ],
  ["to sign nothing", (service, walletId) => service.signTransaction({ walletId }), fieldInvalid],
  ["a line break in a label", (service) => service.createWallet({ label: "a\nb" }), fieldInvalid],
  ["to verify without a key", (service) => service.verifyTransaction({ data, signature }), fieldInvalid],
  [
    "to verify with two keys",
    (service) => service.verifyTransaction({ data, signature, publicKey, publicKeyPem: publicKeyPemOf44 }),
    fieldInvalid,
  ],
  [
    "a signature of an impossible length",
    (service) => service.verifyTransaction({ data, signature: signature.subarray(1), publicKey }),
    lengthInvalid,
  ],
  [
    "a key of an impossible length",
    (service) => service.verifyTransaction({ data, signature, publicKey: publicKey.subarray(1) }),
    keyInvalid,
  ],
  [
    "a PEM of another algorithm",
    (service) => service.verifyTransaction({ data, signature, publicKeyPem: publicKeyPemOf44 }),
    keyInvalid,
  ],
  ["a page of 1001 wallets", (service) => service.listWallets({ pageSize: 1001 }), fieldInvalid],
  [
    "the page token of another list",
    (service) => service.listWallets({ pageToken: Buffer.from("1.0123456789abcdef").toString("base64url") }),
    fieldInvalid,
  ],
];

export function tellOfRefusals({ service, wallet }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(service, wallet("safe").walletId))).toEqual(expected);
    });
  });
}
