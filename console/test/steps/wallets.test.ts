import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../page/signing-key.ts";
import {
  alterTransaction,
  createAndCheckWallet,
  replayTransaction,
  searchAnswers,
  signAndVerify,
  signAsThief,
} from "../../page/stories/wallets/steps.ts";
import { createFakeCaller } from "./fake-caller.ts";

/** A server that calls everything valid. @param address of each wallet, instead of the one of its key */
function startWallets({ address }: { readonly address?: string } = {}) {
  const keys: ReturnType<typeof ml_dsa65.keygen>[] = [];
  return createFakeCaller(({ service }) =>
    service(WalletService, {
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
    }),
  );
}

async function startStory() {
  const caller = startWallets();
  const created = await createAndCheckWallet(caller, "Savings");
  const signed = await signAndVerify(caller, created, "Pay 100");
  return { caller, created, signed };
}

describe("createAndCheckWallet", () => {
  it("finds the address of the key", async () => {
    expect(await createAndCheckWallet(startWallets(), "")).toMatchObject({ isAddressEqual: true });
  });

  it("finds that the address is of another key", async () => {
    const caller = startWallets({ address: `0x${"0".repeat(40)}` });
    expect(await createAndCheckWallet(caller, "")).toMatchObject({ isAddressEqual: false });
  });
});

describe("signAndVerify", () => {
  it("finds the signature valid, with the wallet's key", async () => {
    const { signed } = await startStory();
    expect(signed).toMatchObject({ verdicts: { server: true, browser: true }, isSameAddress: true });
  });
});

describe("alterTransaction", () => {
  it("makes a 9 of the first 1, and does not believe a server that calls the result valid", async () => {
    const { caller, created, signed } = await startStory();
    const { change, verdicts } = await alterTransaction(caller, created, signed);
    expect(new TextDecoder().decode(change.after)).toBe("Pay 900");
    expect(verdicts).toEqual({ server: true, browser: false });
  });
});

describe("signAsThief", () => {
  it("finds a valid signature by a key of another address", async () => {
    const { caller, created, signed } = await startStory();
    expect(await signAsThief(caller, created, signed)).toMatchObject({
      verdicts: { server: true, browser: true },
      isOwner: { server: false, browser: false },
    });
  });
});

describe("replayTransaction", () => {
  it("accepts the transaction once, although it has two signatures", async () => {
    const { caller, created, signed } = await startStory();
    expect(await replayTransaction(caller, created, signed)).toMatchObject({
      accepted: [true, false],
      isSameSignature: false,
    });
  });
});

describe("searchAnswers", () => {
  it("finds each field public", async () => {
    const { created, signed } = await startStory();
    const { answers, unknownCount } = await searchAnswers(created, signed);
    const fields = answers[0]?.fields.map(({ name, is }) => [name, is]);
    expect(fields).toContainEqual(["public_key", "the public key: the address is its hash"]);
    // This server leaves status and algorithm empty, which is not what they say when they are public.
    expect(unknownCount).toBe(
      answers.flatMap(({ fields: all }) => all).filter(({ bytes }) => bytes === 0).length,
    );
  });

  it("finds bytes that are no public key", async () => {
    const { created, signed } = await startStory();
    const before = (await searchAnswers(created, signed)).unknownCount;
    const leaking = { ...created, wallet: { ...created.wallet, publicKey: new Uint8Array(4032) } };
    expect((await searchAnswers(leaking, signed)).unknownCount).toBe(before + 1);
  });
});
