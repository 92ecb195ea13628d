/** wallet.WalletService: unpack, call, pack. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { WalletSchema, WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { readIdempotentCall, readPrincipal } from "../../identity/principal.ts";
import { listSeenBy } from "../../records/ownership.ts";
import type { Stored } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import { checkSignatureLength, readPage, readPublicKey } from "../fields.ts";
import { createWallet } from "./create.ts";
import { signTransaction } from "./sign.ts";
import { type Wallet, type WalletStore, walletAlgorithm } from "./store.ts";
import { walletList } from "./tables.ts";

/** The dependencies of the service. */
export interface WalletServiceDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly wallets: WalletStore;
  readonly now: () => Date;
}

/** Implements the service. */
export function walletService(deps: WalletServiceDeps): ServiceImpl<typeof WalletService> {
  const { provider, store, wallets } = deps;
  return {
    createWallet: ({ label }, context) =>
      createWallet(deps, {
        label,
        owner: readPrincipal(context).userId,
        idempotentCall: readIdempotentCall(context),
      }),
    signTransaction: async ({ walletId, data }, context) => {
      const { wallet, signature } = await signTransaction(deps, walletId, data, readPrincipal(context));
      const { publicKey, address } = wallet;
      return { signature, publicKey, address, publicKeyPem: encodePublicKeyPem(walletAlgorithm, publicKey) };
    },
    verifyTransaction: async ({ data, signature, ...fields }) => {
      const publicKey = readPublicKey(provider, walletAlgorithm, fields);
      checkSignatureLength(walletAlgorithm, signature);
      const valid = await provider.verify(publicKey, data, signature);
      return { valid, address: deriveAddress(publicKey.exportRaw()) };
    },
    listWallets: async (fields, context) => {
      const principal = readPrincipal(context);
      const { rows, nextPageToken } = await wallets.list(
        readPage(fields, listSeenBy(principal, walletList)),
        principal,
      );
      return { wallets: rows.map(pack), nextPageToken, totalSize: await wallets.count(principal) };
    },
    getHealth: async () => {
      const walletCount = await store.ifReachable(() => wallets.count());
      return walletCount === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", walletCount };
    },
  };
}

function pack({
  record: { walletId, address, publicKey, label, createdAt },
  isIntact,
}: Stored<Wallet>): MessageInitShape<typeof WalletSchema> {
  if (!isIntact) return { walletId, damaged: true };
  return {
    walletId,
    address,
    publicKey,
    label,
    algorithm: walletAlgorithm,
    createdAt: timestampFromDate(createdAt),
  };
}
