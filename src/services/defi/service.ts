/** defi.DefiService: unpack, call, pack. */

import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { DefiService } from "#gen/defi/defi_service_pb.ts";
import { onceOf, viewerOf } from "../../identity/principal.ts";
import { listSeenBy } from "../../records/ownership.ts";
import { damageOf, readPage } from "../fields.ts";
import { createMultisig, type DefiParts } from "./create-multisig.ts";
import { createProposal } from "./create-proposal.ts";
import { executeProposal } from "./execute-proposal.ts";
import { packProposal } from "./proposal.ts";
import { signProposal } from "./sign-proposal.ts";
import { proposalList, walletList } from "./store.ts";

/** What the service needs. */
export interface DefiServiceParts extends DefiParts {}

/** Makes the implementation. */
export function defiService(parts: DefiServiceParts): ServiceImpl<typeof DefiService> {
  const { store, governance } = parts;
  return {
    createMultisig: ({ signerCount, threshold, signerPublicKeys }, context) => {
      const who = { owner: viewerOf(context).userId, once: onceOf(context) };
      return createMultisig(parts, { signerCount, threshold, signerPublicKeys, ...who });
    },
    createProposal: ({ walletId, data, title, expiresAt }, context) =>
      createProposal(parts, {
        walletId,
        data,
        title,
        expiresAt: expiresAt && timestampDate(expiresAt),
        viewer: viewerOf(context),
        once: onceOf(context),
      }),
    signProposal: ({ proposalId, signer, signature }, context) =>
      signProposal(parts, {
        proposalId,
        signer: signer.toLowerCase(),
        signature,
        viewer: viewerOf(context),
        once: onceOf(context),
      }),
    executeProposal: ({ proposalId }, context) =>
      executeProposal(parts, { proposalId, viewer: viewerOf(context), once: onceOf(context) }),
    listWallets: async (fields, context) => {
      const viewer = viewerOf(context);
      const page = readPage(fields, listSeenBy(viewer, walletList));
      const { rows, nextPageToken } = await governance.listWallets(page, viewer);
      const wallets = rows.map(({ walletId, signers, threshold, isIntact }) => ({
        walletId,
        signers: [...signers],
        threshold,
        ...damageOf({ isIntact }),
      }));
      return { wallets, nextPageToken, totalSize: await governance.countWallets(viewer) };
    },
    listProposals: async ({ walletId, proposalStatus: status, ...fields }, context) => {
      const filter = { walletId, status };
      const viewer = viewerOf(context);
      const page = readPage(fields, listSeenBy(viewer, proposalList(filter)));
      const { rows, nextPageToken } = await governance.listProposals(page, filter, viewer);
      const totalSize = await governance.countProposals(filter, viewer);
      const proposals = rows.map((proposal) => ({ ...packProposal(proposal), ...damageOf(proposal) }));
      return { proposals, nextPageToken, totalSize };
    },
    getHealth: async () => {
      const counts = await store.ifReachable(() =>
        Promise.all([governance.countWallets(), governance.countProposals({ walletId: "", status: "" })]),
      );
      if (counts === undefined) return { serviceStatus: "DOWN" };
      const [walletCount, proposalCount] = counts;
      return { serviceStatus: "UP", walletCount, proposalCount };
    },
  };
}
