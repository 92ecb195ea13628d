/** wallet.WalletService: unpack, call, pack. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { WalletSchema, WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { addressOf } from "../../crypto/address.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { onceOf, viewerOf } from "../../identity/principal.ts";
import { listSeenBy } from "../../records/ownership.ts";
import type { Marked } from "../../records/tag.ts";
import type { Store } from "../../store/store.ts";
import { checkSignatureLength, damageOf, readPage, readPublicKey } from "../fields.ts";
import { createWallet } from "./create.ts";
import { signTransaction } from "./sign.ts";
import { type Wallet, type WalletStore, walletAlgorithm, walletList } from "./store.ts";

/** What the service needs. */
export interface WalletServiceParts {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly wallets: WalletStore;
  readonly now: () => Date;
}

/** Makes the implementation. */
export function walletService(parts: WalletServiceParts): ServiceImpl<typeof WalletService> {
  const { provider, store, wallets } = parts;
  return {
    createWallet: ({ label }, context) =>
      createWallet(parts, { label, owner: viewerOf(context).userId, once: onceOf(context) }),
    signTransaction: async ({ walletId, data }, context) => {
      const { wallet, signature } = await signTransaction(parts, walletId, data, viewerOf(context));
      const { publicKey, address } = wallet;
      return { signature, publicKey, address, publicKeyPem: encodePublicKeyPem(walletAlgorithm, publicKey) };
    },
    verifyTransaction: async ({ data, signature, ...fields }) => {
      const publicKey = readPublicKey(provider, walletAlgorithm, fields);
      checkSignatureLength(walletAlgorithm, signature);
      const valid = await provider.verify(publicKey, data, signature);
      return { valid, address: addressOf(publicKey.exportRaw()) };
    },
    listWallets: async (fields, context) => {
      const viewer = viewerOf(context);
      const { rows, nextPageToken } = await wallets.list(
        readPage(fields, listSeenBy(viewer, walletList)),
        viewer,
      );
      return { wallets: rows.map(pack), nextPageToken, totalSize: await wallets.count(viewer) };
    },
    getHealth: async () => {
      const walletCount = await store.ifReachable(() => wallets.count());
      return walletCount === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", walletCount };
    },
  };
}

function pack({
  walletId,
  address,
  publicKey,
  label,
  createdAt,
  isIntact,
}: Marked<Wallet>): MessageInitShape<typeof WalletSchema> {
  return {
    walletId,
    address,
    publicKey,
    label,
    algorithm: walletAlgorithm,
    createdAt: timestampFromDate(createdAt),
    ...damageOf({ isIntact }),
  };
}
