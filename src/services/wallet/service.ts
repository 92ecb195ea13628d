/** wallet.WalletService: unpack, call, pack. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { WalletSchema, WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import { readCaller, readPrincipal } from "../../identity/principal.ts";
import type { Stored } from "../../records/table-declaration.ts";
import { checkSignatureLength, readHealth, readList, readPublicKey } from "../fields.ts";
import { type Wallet, walletAlgorithm } from "./tables.ts";
import { createWallet, signTransaction, type WalletDeps } from "./wallets.ts";

export function walletService(deps: WalletDeps): ServiceImpl<typeof WalletService> {
  const { provider, store, wallets } = deps;
  return {
    createWallet: (req, context) => createWallet(deps, req, readCaller(context)),
    signTransaction: async ({ walletId, data }, context) => {
      const { wallet, signature } = await signTransaction(deps, walletId, data, readPrincipal(context));
      const { publicKey, address } = wallet;
      return { signature, publicKey, address, publicKeyPem: encodePublicKeyPem(walletAlgorithm, publicKey) };
    },
    verifyTransaction: async ({ data, signature, ...fields }) => {
      const publicKey = readPublicKey(provider, walletAlgorithm, fields, "publicKey");
      checkSignatureLength(walletAlgorithm, signature);
      const valid = await provider.verify(publicKey, data, signature);
      return { valid, address: deriveAddress(publicKey.exportRaw()) };
    },
    listWallets: async (fields, context) => {
      const { rows, ...page } = await readList(wallets, fields, { principal: readPrincipal(context) });
      return { ...page, wallets: rows.map(pack) };
    },
    getHealth: () => readHealth(store, async () => ({ walletCount: await wallets.count() })),
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
