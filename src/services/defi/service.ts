/** defi.DefiService: unpack, call, pack. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { DefiService } from "#gen/defi/defi_service_pb.ts";
import { readIdempotentCall, readPrincipal } from "../../identity/principal.ts";
import { listSeenBy } from "../../records/ownership.ts";
import { readPage, readTime } from "../fields.ts";
import { createMultisig, type DefiDeps } from "./create-multisig.ts";
import { createProposal } from "./create-proposal.ts";
import { executeProposal } from "./execute-proposal.ts";
import { packProposal } from "./proposal.ts";
import { proposalList } from "./proposal-store.ts";
import { signProposal } from "./sign-proposal.ts";
import { walletList } from "./tables.ts";

/** The dependencies of the service. */
export interface DefiServiceDeps extends DefiDeps {}

/** Implements the service. */
export function defiService(deps: DefiServiceDeps): ServiceImpl<typeof DefiService> {
  const { store, governance } = deps;
  return {
    createMultisig: ({ signerCount, threshold, signerPublicKeys }, context) => {
      const who = { owner: readPrincipal(context).userId, idempotentCall: readIdempotentCall(context) };
      return createMultisig(deps, { signerCount, threshold, signerPublicKeys, ...who });
    },
    createProposal: ({ walletId, data, title, expiresAt }, context) =>
      createProposal(deps, {
        walletId,
        data,
        title,
        expiresAt: expiresAt && readTime("expiresAt", expiresAt),
        principal: readPrincipal(context),
        idempotentCall: readIdempotentCall(context),
      }),
    signProposal: ({ proposalId, signer, signature }, context) =>
      signProposal(deps, {
        proposalId,
        signer: signer.toLowerCase(),
        signature,
        principal: readPrincipal(context),
        idempotentCall: readIdempotentCall(context),
      }),
    executeProposal: ({ proposalId }, context) =>
      executeProposal(deps, {
        proposalId,
        principal: readPrincipal(context),
        idempotentCall: readIdempotentCall(context),
      }),
    listWallets: async (fields, context) => {
      const principal = readPrincipal(context);
      const page = readPage(fields, listSeenBy(principal, walletList));
      const { rows, nextPageToken } = await governance.listWallets(page, principal);
      const wallets = rows.map(({ record: { walletId, signers, threshold }, isIntact }) =>
        isIntact ? { walletId, signers: [...signers], threshold } : { walletId, damaged: true },
      );
      return { wallets, nextPageToken, totalSize: await governance.countWallets(principal) };
    },
    listProposals: async ({ walletId, proposalStatus: status, ...fields }, context) => {
      const filter = { walletId, status };
      const principal = readPrincipal(context);
      const page = readPage(fields, listSeenBy(principal, proposalList(filter)));
      const { rows, nextPageToken } = await governance.listProposals(page, principal, filter);
      const totalSize = await governance.countProposals(principal, filter);
      const proposals = rows.map(({ record, isIntact }) =>
        isIntact ? packProposal(record) : { proposalId: record.proposalId, damaged: true },
      );
      return { proposals, nextPageToken, totalSize };
    },
    getHealth: async () => {
      const counts = await store.ifReachable(() =>
        Promise.all([governance.countWallets(), governance.countProposals()]),
      );
      if (counts === undefined) return { serviceStatus: "DOWN" };
      const [walletCount, proposalCount] = counts;
      return { serviceStatus: "UP", walletCount, proposalCount };
    },
  };
}
