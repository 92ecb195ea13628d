/** Proposed roots: reading them with the proposals in defi that decide about them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { RootProposalSchema } from "#gen/tuf/repository_service_pb.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { refuse } from "../../src/errors.ts";
import type { FindOptions } from "../../src/records/record-table.ts";
import { hashProposal } from "../../src/services/defi/proposal.ts";
import type { Proposal } from "../../src/services/defi/store.ts";
import type { TufDeps } from "./deps.ts";
import { hashContent } from "./metadata.ts";
import { reasons } from "./reasons.ts";
import { type Repository, type RootProposalRecord, rootProposalTable } from "./tables.ts";
import { findTufKeyId, type RootWallet, readWallet } from "./wallets.ts";

/** A proposed root with its proposal. */
export interface ProposedRoot {
  readonly record: RootProposalRecord;
  /** Its data are the canonical JSON of the root. */
  readonly proposal: Proposal;
}

/** The signers of the root that decides, and of the proposed one. */
export interface RootWallets {
  readonly current: RootWallet;
  readonly next: RootWallet;
}

/** @throws PROPOSAL_NOT_FOUND, RecordDamagedError */
export async function findProposedRoot(
  { tuf, governance }: TufDeps,
  { repository }: Repository,
  proposalId: string,
  { db }: Pick<FindOptions, "db"> = {},
): Promise<ProposedRoot> {
  const options = db && { db };
  const record = await tuf.rootProposals.findIntact({ proposalId }, options);
  const proposal = await governance.proposals.findIntact({ proposalId }, options);
  if (record?.repository !== repository || proposal === undefined)
    throw refuse("PROPOSAL_NOT_FOUND", `repository ${repository} has no proposed root ${proposalId}`, {
      repository,
      proposalId,
    });
  if (Buffer.compare(hashContent(proposal.data), record.sha256) !== 0)
    throw new RecordDamagedError(rootProposalTable.describe(record));
  return { record, proposal };
}

export async function readRootWallets(
  deps: TufDeps,
  { owner }: Repository,
  { record, proposal }: ProposedRoot,
): Promise<RootWallets> {
  return {
    current: await readWallet(deps, proposal.walletId, owner),
    next: await readWallet(deps, record.walletId, owner),
  };
}

/**
 * Checks that a proposed root can still become the next one.
 *
 * @throws ROOT_OUTDATED, PROPOSAL_EXPIRED
 */
export function requireNext(
  { now }: Pick<TufDeps, "now">,
  { repository, rootVersion }: Repository,
  { record: { proposalId, version, expiresAt } }: ProposedRoot,
): void {
  if (version !== rootVersion + 1)
    throw refuse(
      reasons.rootOutdated,
      `proposal ${proposalId} is for root ${version}, but root ${rootVersion} of ${repository} is already published; propose root ${rootVersion + 1}`,
      { repository, proposalId, version: String(version), rootVersion: String(rootVersion) },
    );
  if (expiresAt > now()) return;
  const at = expiresAt.toISOString();
  throw refuse("PROPOSAL_EXPIRED", `proposal ${proposalId} expired at ${at}; propose the root again`, {
    proposalId,
    expiresAt: at,
  });
}

/** @param options.db a transaction's database, for an answer about its changes */
export async function packProposedRoot(
  deps: TufDeps,
  repository: Repository,
  proposed: ProposedRoot,
  { db }: Pick<FindOptions, "db"> = {},
): Promise<MessageInitShape<typeof RootProposalSchema>> {
  const { record, proposal } = proposed;
  const { current, next } = await readRootWallets(deps, repository, proposed);
  const signatures = await deps.tuf.readRootSignatures(record.proposalId, db);
  const signers = new Map([...current.signers, ...next.signers].map((signer) => [signer.address, signer]));
  return {
    proposalId: record.proposalId,
    repository: record.repository,
    version: record.version,
    metadata: proposal.data,
    signingHash: hashProposal(proposal),
    signers: [...signers.values()].map((signer) => ({
      signer: signer.address,
      tufKeyId: findTufKeyId(signer),
      isCurrent: current.wallet.signers.includes(signer.address),
      isNew: next.wallet.signers.includes(signer.address),
      hasVoted: proposal.signedBy.includes(signer.address),
      hasSigned: signatures.has(signer.address),
    })),
    currentThreshold: current.wallet.threshold,
    newThreshold: next.wallet.threshold,
    proposalStatus: findStatus(deps, repository, proposed),
    expiresAt: timestampFromDate(record.expiresAt),
    createdAt: timestampFromDate(proposal.createdAt),
  };
}

function findStatus(
  { now }: Pick<TufDeps, "now">,
  { rootVersion }: Repository,
  { record: { version, isPublished, expiresAt }, proposal }: ProposedRoot,
): string {
  if (isPublished) return "PUBLISHED";
  if (version <= rootVersion) return "OUTDATED";
  return expiresAt <= now() ? "EXPIRED" : proposal.status;
}
