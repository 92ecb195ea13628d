import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../page/signing-key.ts";
import * as story from "../../page/stories/wallets/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

/**
 * A server that calls everything valid.
 *
 * @param address each wallet's address, instead of its key's
 */
function startWallets(address?: string) {
  const keys: ReturnType<typeof ml_dsa65.keygen>[] = [];
  return serve(WalletService, {
    async createWallet() {
      const { publicKey } = keys[keys.push(ml_dsa65.keygen()) - 1] ?? ml_dsa65.keygen();
      const walletId = `wallet-00000000-0000-0000-0000-00000000000${keys.length}`;
      return { walletId, publicKey, address: address ?? (await deriveAddress(publicKey)) };
    },
    async signTransaction({ walletId, data }) {
      const { publicKey, secretKey } = keys[Number(walletId.at(-1)) - 1] ?? ml_dsa65.keygen();
      return { signature: ml_dsa65.sign(data, secretKey), publicKey };
    },
    verifyTransaction: async ({ publicKey }) => ({ valid: true, address: await deriveAddress(publicKey) }),
  });
}

async function startStory() {
  const caller = startWallets();
  const created = await runStep(story.creating, caller, { label: "Savings" });
  const signed = await runStep(story.signing, caller, { creating: created, text: "Pay 100" });
  return { caller, given: { creating: created, signing: signed } };
}

it.each([
  ["finds the key's address", undefined, true],
  ["detects that the address belongs to a different key", `0x${"0".repeat(40)}`, false],
])("creating %s", async (_what, address, isAddressEqual) => {
  const created = await runStep(story.creating, startWallets(address), { label: "" });
  expect(created).toMatchObject({ isAddressEqual });
});

it("altering turns the first 1 into a 9, and does not believe a server that calls the result valid", async () => {
  const { caller, given } = await startStory();
  const { change, verdicts } = await runStep(story.altering, caller, given);
  expect(new TextDecoder().decode(change.after)).toBe("Pay 900");
  expect(verdicts).toEqual({ server: true, browser: false });
});

it("searching finds every field public, and detects bytes that are not a public key", async () => {
  const { caller, given } = await startStory();
  const { fields, unknownCount } = await runStep(story.searching, caller, given);
  const publicKey = { name: "public_key", is: "the public key: the address is its hash" };
  expect(fields).toContainEqual(expect.objectContaining(publicKey));
  // This server leaves status and algorithm empty, which is not their public form.
  expect(unknownCount).toBe(fields.filter(({ bytes }) => bytes === 0).length);
  const wallet = { ...given.creating.wallet, publicKey: new Uint8Array(4032) };
  const leaking = { ...given, creating: { ...given.creating, wallet } };
  expect((await runStep(story.searching, caller, leaking)).unknownCount).toBe(unknownCount + 1);
});
