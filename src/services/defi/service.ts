/** defi.DefiService: unpack, call, pack. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { DefiService } from "#gen/defi/defi_service_pb.ts";
import { readCaller, readPrincipal } from "../../identity/principal.ts";
import { readHealth, readList } from "../fields.ts";
import { createMultisig, type DefiDeps } from "./create-multisig.ts";
import { createProposal } from "./create-proposal.ts";
import { executeProposal } from "./execute-proposal.ts";
import { packProposal } from "./proposal.ts";
import { signProposal } from "./sign-proposal.ts";

export function defiService(deps: DefiDeps): ServiceImpl<typeof DefiService> {
  const { store, governance } = deps;
  return {
    createMultisig: (req, context) => createMultisig(deps, req, readCaller(context)),
    createProposal: (req, context) => createProposal(deps, req, readCaller(context)),
    signProposal: (req, context) => signProposal(deps, req, readCaller(context)),
    executeProposal: (req, context) => executeProposal(deps, req, readCaller(context)),
    listWallets: async (fields, context) => {
      const query = { principal: readPrincipal(context) };
      const { rows, ...page } = await readList(governance.wallets, fields, query);
      const wallets = rows.map(({ record: { walletId, signers, threshold }, isIntact }) =>
        isIntact ? { walletId, signers: [...signers], threshold } : { walletId, damaged: true },
      );
      return { ...page, wallets };
    },
    listProposals: async ({ walletId, proposalStatus: status, ...fields }, context) => {
      const query = { principal: readPrincipal(context), filters: { walletId, status } };
      const { rows, ...page } = await readList(governance.proposals, fields, query);
      const proposals = rows.map(({ record, isIntact }) =>
        isIntact ? packProposal(record) : { proposalId: record.proposalId, damaged: true },
      );
      return { ...page, proposals };
    },
    getHealth: () =>
      readHealth(store, async () => ({
        walletCount: await governance.wallets.count(),
        proposalCount: await governance.proposals.count(),
      })),
  };
}
