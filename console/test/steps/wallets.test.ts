import { timestampNow } from "@bufbuild/protobuf/wkt";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../page/signing-key.ts";
import * as story from "../../page/stories/wallets/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

/** RFC 9881, section 4: the prefix of the raw key in an ML-DSA-65 SubjectPublicKeyInfo. */
const spkiHead = Buffer.from("308207b2300b0609608648016503040312038207a100", "hex");

function toPem(publicKey: Uint8Array): string {
  const text = Buffer.concat([spkiHead, publicKey]).toString("base64");
  return `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`;
}

/**
 * A server that calls everything valid, and fills every field of its answers.
 *
 * @param address each wallet's address, instead of its key's
 */
function startWallets(address?: string) {
  const keys: ReturnType<typeof ml_dsa65.keygen>[] = [];
  return serve(WalletService, {
    async createWallet({ label }) {
      const { publicKey } = keys[keys.push(ml_dsa65.keygen()) - 1] ?? ml_dsa65.keygen();
      const walletId = `wallet-00000000-0000-0000-0000-00000000000${keys.length}`;
      return {
        status: "success",
        walletId,
        address: address ?? (await deriveAddress(publicKey)),
        publicKey,
        algorithm: "ML-DSA-65",
        createdAt: timestampNow(),
        publicKeyPem: toPem(publicKey),
        label,
      };
    },
    async signTransaction({ walletId, data }) {
      const { publicKey, secretKey } = keys[Number(walletId.at(-1)) - 1] ?? ml_dsa65.keygen();
      const signature = ml_dsa65.sign(data, secretKey);
      const address = await deriveAddress(publicKey);
      return { status: "success", signature, publicKey, address, publicKeyPem: toPem(publicKey) };
    },
    async verifyTransaction({ publicKey }) {
      return { status: "success", valid: true, address: await deriveAddress(publicKey) };
    },
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
  const { fields } = await runStep(story.searching, caller, given);
  const publicKey = { name: "public_key", is: "the public key: the address is its hash" };
  expect(fields).toContainEqual(expect.objectContaining(publicKey));
  // A new field, which this server leaves empty, is not known: add it to findFields, and to this server.
  expect(fields.filter((field) => field.is === undefined)).toEqual([]);
  const wallet = { ...given.creating.wallet, publicKey: new Uint8Array(4032) };
  const leaking = { ...given, creating: { ...given.creating, wallet } };
  expect((await runStep(story.searching, caller, leaking)).unknownCount).toBe(1);
});
