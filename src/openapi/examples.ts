/** The examples of all calls, in an order in which they work: each is made after those whose answers it needs. */
import type { Example } from "./example.ts";
import { blockchainExamples } from "./examples/blockchain.ts";
import { dappExamples } from "./examples/dapp.ts";
import { defiExamples } from "./examples/defi.ts";
import { iotExamples } from "./examples/iot.ts";
import { kmsExamples } from "./examples/kms.ts";
import { nftExamples } from "./examples/nft.ts";
import { pqcExamples } from "./examples/pqc.ts";
import { vpnExamples } from "./examples/vpn.ts";
import { walletExamples } from "./examples/wallet.ts";

export const examples: readonly Example[] = [
  ...pqcExamples,
  ...kmsExamples,
  ...iotExamples,
  ...vpnExamples,
  ...dappExamples,
  ...walletExamples,
  ...defiExamples,
  ...blockchainExamples,
  ...nftExamples,
];
