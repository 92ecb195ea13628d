/** Cost of verifying a long chain, apart from its signatures. */

import { showProgress } from "./results.ts";
import { type Child, compare, inFlight, post, rawProvider } from "./tools.ts";

/** Blocks in the chain, including genesis. */
const chainLength = 10_000;

export async function measureChain(app: Child): Promise<void> {
  showProgress(`making a chain of ${chainLength.toLocaleString("en")} blocks`);
  await post(app, "/api/blockchain/register-node", {});
  let left = chainLength - 1;
  const add = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await post(app, "/api/blockchain/add-block", { data: Buffer.alloc(100, left).toString("base64") });
    }
  };
  await Promise.all(Array.from({ length: inFlight }, add));
  showProgress();
  await compare(
    `VerifyChain of ${chainLength.toLocaleString("en")} blocks against the provider's verification, in signatures`,
    "reach 0.8",
    async () => {
      const startMs = performance.now();
      const { valid, blocksChecked } = await post(app, "/api/blockchain/verify-chain", {});
      if (!valid || blocksChecked !== chainLength) throw new Error("the chain must be valid and complete");
      return (chainLength - 1) / ((performance.now() - startMs) / 1000);
    },
    () => rawProvider("verify ML-DSA-65"),
  );
}
