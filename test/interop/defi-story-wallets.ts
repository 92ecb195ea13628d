/** The chapter of a story that makes wallets. */
import { generateKeyPairSync, sign } from "node:crypto";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { anAddress, anId } from "../services/expected.ts";
import { addressOf } from "../services/node-crypto.ts";
import { refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import type { SignAsOwner, Stage } from "./defi-story.ts";

export function tellOfWallets({ defi, once, wallets, owners }: Stage): void {
  describe("CreateMultisig", () => {
    it("makes signers whose keys it keeps", async () => {
      const wallet = await defi.createMultisig({ signerCount: 3, threshold: 2 });
      expect(wallet).toEqual({
        $typeName: "defi.CreateMultisigResponse",
        status: "success",
        walletId: anId("multisig"),
        signers: [anAddress, anAddress, anAddress],
        threshold: 2,
      });
      expect(new Set(wallet.signers).size).toBe(3);
      wallets.keep("council", wallet);
    });

    it("takes the public keys of signers who keep their own, and gives their addresses in that order", async () => {
      const made = [makeOwner(), makeNobleOwner()];
      const signerPublicKeys = made.map(({ publicKey }) => publicKey);
      const signers = signerPublicKeys.map(addressOf);
      const wallet = await defi.createMultisig({ signerPublicKeys, threshold: 2 });
      expect(wallet).toEqual({
        $typeName: "defi.CreateMultisigResponse",
        status: "success",
        walletId: anId("multisig"),
        signers,
        threshold: 2,
      });
      wallets.keep("owners", wallet);
      for (const owner of made) owners.set(addressOf(owner.publicKey), owner.sign);
    });

    it("with an Idempotency-Key makes one wallet, and is refused if another request had the key", async () => {
      const request = { signerCount: 1, threshold: 1 };
      const first = await defi.createMultisig(request, once("wallet"));
      wallets.keep("one", first);
      expect(await defi.createMultisig(request, once("wallet"))).toEqual(first);
      const other = defi.createMultisig({ ...request, signerCount: 2 }, once("wallet"));
      expect(await refusal(other)).toEqual(reused);
    });
  });
}

interface Owner {
  readonly publicKey: Uint8Array;
  readonly sign: SignAsOwner;
}

function makeOwner(): Owner {
  const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-65");
  return {
    publicKey: new Uint8Array(publicKey.export({ format: "raw-public" })),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}

/** With another implementation than node:crypto and the service have. */
function makeNobleOwner(): Owner {
  const { publicKey, secretKey } = ml_dsa65.keygen();
  return { publicKey, sign: (message) => ml_dsa65.sign(message, secretKey) };
}
