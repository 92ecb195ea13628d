import { createChainStore } from "../../services/blockchain/store.ts";
import { type ChainVerification, verifyChain } from "../../services/blockchain/verify-chain.ts";
import { counted } from "../output/output.ts";
import { withCount } from "../output/progress.ts";
import { verdict } from "./store-verb.ts";
import { existingStoreVerb } from "./with-store.ts";

/** Verifies the blockchain in a store; works while the server runs. */
export const chainVerify = existingStoreVerb({
  line: "chain verify",
  meaning: "Verifies the blockchain: indexes, links, hashes, validators, signatures and the last block.",
  async work({ store, provider }) {
    const chain = createChainStore(store);
    const found = await withCount("blocks verified", (onProgress) =>
      verifyChain({ chain, provider }, { onProgress }),
    );
    return verdict(found.valid, describe(found));
  },
});

function describe({ valid, blocksChecked, firstInvalidIndex, reason }: ChainVerification): string {
  return valid
    ? `The chain is valid: ${counted(blocksChecked, "block")}.`
    : `The chain is broken at block ${firstInvalidIndex}: ${meanings[reason]}. Valid before it: ${counted(blocksChecked, "block")}.`;
}

const meanings: Readonly<Record<ChainVerification["reason"], string>> = {
  "": "",
  INDEX: "INDEX, a block is missing or out of place",
  LINK: "LINK, it does not contain the hash of the previous block",
  HASH: "HASH, its hash does not match its content",
  VALIDATOR: "VALIDATOR, no validator has this address, or the validator's record was changed",
  SIGNATURE: "SIGNATURE, its validator did not sign it",
  END: "END, the chain does not end where it should",
};
