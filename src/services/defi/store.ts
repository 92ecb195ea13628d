/** What the governance service keeps: wallets with their signers, proposals, and the signatures of these. */

import { readInt32, readOptionalTime, readTime } from "../../database/row-values.ts";
import type { DefiProposalsTable, DefiSignersTable, DefiWalletsTable } from "../../database/schema.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import {
  countedLists,
  listSeenBy,
  type Principal,
  seenBy,
  systemPrincipal,
} from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Marked } from "../../records/tag.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

/** The algorithm of all signers. */
export const signerAlgorithm = "ML-DSA-65";

/** A wallet that several signers govern. */
export interface MultisigWallet {
  readonly walletId: string;
  readonly threshold: number;
  /** Addresses. */
  readonly signers: readonly string[];
  /** Who made it. */
  readonly owner: string;
  readonly createdAt: Date;
}

/** A signer of a wallet. */
export interface Signer {
  readonly walletId: string;
  readonly address: string;
  /** Raw. */
  readonly publicKey: Uint8Array;
  /** Whether the service keeps the secret key; else the signer does. */
  readonly isServerHeld: boolean;
}

/** A proposal. */
export interface Proposal {
  readonly proposalId: string;
  readonly walletId: string;
  readonly data: Uint8Array;
  readonly title: string;
  readonly threshold: number;
  readonly status: "PENDING" | "EXECUTED";
  /** Addresses of those who signed, in their order. */
  readonly signedBy: readonly string[];
  /** Whose wallet it is about. */
  readonly owner: string;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  readonly executedAt: Date | undefined;
}

/** Filters of a list of proposals; empty for all. */
export interface ProposalFilter {
  readonly walletId: string;
  readonly status: string;
}

/** Names the list of all wallets, for page tokens and counts. */
export const walletList = "defi_wallets";

/** Names a list of proposals, for page tokens and counts. */
export function proposalList({ walletId, status }: ProposalFilter): string {
  const filters = [walletId && `walletId=${walletId}`, status && `status=${status}`];
  return ["defi_proposals", ...filters.filter((text) => text !== "")].join(" ");
}

/** Names a signer's sealed secret key. */
export function nameSealedKey({ walletId, address, publicKey }: Signer): SealedKey {
  const identity = `defi_signers/${walletId}/${address}/secret-key`;
  return {
    record: `signer ${address} of wallet ${walletId}`,
    identity,
    algorithm: signerAlgorithm,
    publicKey,
  };
}

/** The wallets and proposals of the service; what was changed behind our back throws RecordDamaged. */
export interface DefiStore {
  findWallet(walletId: string, principal: Principal): Promise<MultisigWallet | undefined>;
  findSigner(walletId: string, address: string): Promise<Signer | undefined>;
  listWallets(request: PageRequest, principal: Principal): Promise<Page<Marked<MultisigWallet>>>;
  countWallets(principal?: Principal): Promise<number>;
  /** Keeps a wallet, within a transaction. */
  insertWallet(transaction: WriteTransaction, wallet: MultisigWallet): Promise<void>;
  /** Keeps a signer, within a transaction. @param secret of one whose key the service keeps */
  insertSigner(transaction: WriteTransaction, signer: Signer, secret?: Uint8Array): Promise<void>;

  findProposal(proposalId: string, principal: Principal): Promise<Proposal | undefined>;
  /** Reads a proposal within a transaction. */
  findForChange(transaction: WriteTransaction, proposalId: string): Promise<Proposal | undefined>;
  listProposals(
    request: PageRequest,
    filter: ProposalFilter,
    principal: Principal,
  ): Promise<Page<Marked<Proposal>>>;
  countProposals(filter: ProposalFilter, principal?: Principal): Promise<number>;
  /** Keeps a proposal, within a transaction. */
  insertProposal(transaction: WriteTransaction, proposal: Proposal): Promise<void>;
  /** Adds a signature to a proposal, within a transaction. @returns the proposal with it */
  addSignature(
    transaction: WriteTransaction,
    proposal: Proposal,
    signer: string,
    signature: Uint8Array,
  ): Promise<Proposal>;
  /** Marks a proposal as executed, within a transaction. @returns the proposal as it is then */
  markExecuted(transaction: WriteTransaction, proposal: Proposal, now: Date): Promise<Proposal>;
  /** The signatures of a proposal by the signers' addresses. */
  readSignatures(proposalId: string): Promise<ReadonlyMap<string, Uint8Array>>;
}

/** Count the signers of an owner's wallets, and the proposals. Wallets have at least one signer each. */
export const signerQuota = recordQuota("defi_signers", "signers of wallets");
export const proposalQuota = recordQuota("defi_proposals", "proposals");

/** Makes the store of the service on the store of all. */
export function createDefiStore(store: Store): DefiStore {
  const readProposal = async (
    db: WriteTransaction["db"],
    proposalId: string,
  ): Promise<Proposal | undefined> => {
    const row = await db
      .selectFrom("defi_proposals")
      .selectAll()
      .where("proposal_id", "=", proposalId)
      .executeTakeFirst();
    const proposal = row && toProposal(row);
    if (proposal) store.requireTagged(`proposal ${proposalId}`, listProposalFields(proposal), row.record_tag);
    return proposal;
  };
  const update = async ({ db }: WriteTransaction, changed: Proposal): Promise<void> => {
    await db
      .updateTable("defi_proposals")
      .set({
        signed_by: JSON.stringify(changed.signedBy),
        proposal_status: changed.status,
        executed_at_ms: changed.executedAt?.getTime() ?? null,
        record_tag: store.tagRecord(listProposalFields(changed)),
      })
      .where("proposal_id", "=", changed.proposalId)
      .execute();
  };
  return {
    async findWallet(walletId, principal) {
      const row = await store.reader
        .selectFrom("defi_wallets")
        .selectAll()
        .where("wallet_id", "=", walletId)
        .executeTakeFirst();
      const wallet = row && toWallet(row);
      if (wallet) store.requireTagged(`wallet ${walletId}`, listWalletFields(wallet), row.record_tag);
      return seenBy(principal, wallet);
    },
    async findSigner(walletId, address) {
      const row = await store.reader
        .selectFrom("defi_signers")
        .selectAll()
        .where("wallet_id", "=", walletId)
        .where("address", "=", address)
        .executeTakeFirst();
      const signer = row && toSigner(row);
      if (signer) {
        const record = `signer ${address} of wallet ${walletId}`;
        store.requireTagged(record, listSignerFields(signer), row.record_tag);
      }
      return signer;
    },
    async listWallets(request, principal) {
      let query = store.reader.selectFrom("defi_wallets").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, listSeenBy(principal, walletList), ({ position }) => position);
      const pack = (row: DefiWalletsTable): Marked<MultisigWallet> => {
        const wallet = toWallet(row);
        return { ...wallet, isIntact: store.isTagged(listWalletFields(wallet), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    countWallets: (principal = systemPrincipal) => readCount(store.reader, listSeenBy(principal, walletList)),
    async insertWallet({ db, requireRoom }, wallet) {
      await requireRoom(signerQuota, wallet.owner, wallet.signers.length);
      await db
        .insertInto("defi_wallets")
        .values({
          position: await nextPosition(db, "defi_wallets"),
          wallet_id: wallet.walletId,
          threshold: wallet.threshold,
          signers: JSON.stringify(wallet.signers),
          owner: wallet.owner,
          created_at_ms: wallet.createdAt.getTime(),
          record_tag: store.tagRecord(listWalletFields(wallet)),
        })
        .execute();
      await changeCounts(db, countedLists([walletList], wallet), 1);
      await changeCounts(db, [listSeenBy(wallet, signerQuota.list)], wallet.signers.length);
    },
    async insertSigner({ db, putSecret }, signer, secret) {
      await db
        .insertInto("defi_signers")
        .values({
          wallet_id: signer.walletId,
          address: signer.address,
          public_key: signer.publicKey,
          is_kept: signer.isServerHeld ? 1 : 0,
          record_tag: store.tagRecord(listSignerFields(signer)),
        })
        .execute();
      if (secret !== undefined) await putSecret(nameSealedKey(signer).identity, secret);
    },

    findProposal: async (proposalId, principal) =>
      seenBy(principal, await readProposal(store.reader, proposalId)),
    findForChange: ({ db }, proposalId) => readProposal(db, proposalId),
    async listProposals(request, filter, principal) {
      let query = store.reader.selectFrom("defi_proposals").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      if (filter.walletId !== "") query = query.where("wallet_id", "=", filter.walletId);
      if (filter.status !== "") query = query.where("proposal_status", "=", filter.status);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const list = listSeenBy(principal, proposalList(filter));
      const page = cutPage(rows, request, list, ({ position }) => position);
      const pack = (row: DefiProposalsTable): Marked<Proposal> => {
        const proposal = toProposal(row);
        return { ...proposal, isIntact: store.isTagged(listProposalFields(proposal), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    countProposals: (filter, principal = systemPrincipal) =>
      readCount(store.reader, listSeenBy(principal, proposalList(filter))),
    async insertProposal({ db, requireRoom }, proposal) {
      await requireRoom(proposalQuota, proposal.owner);
      await db
        .insertInto("defi_proposals")
        .values({
          position: await nextPosition(db, "defi_proposals"),
          proposal_id: proposal.proposalId,
          wallet_id: proposal.walletId,
          data: proposal.data,
          title: proposal.title,
          threshold: proposal.threshold,
          proposal_status: proposal.status,
          signed_by: JSON.stringify(proposal.signedBy),
          owner: proposal.owner,
          created_at_ms: proposal.createdAt.getTime(),
          expires_at_ms: proposal.expiresAt?.getTime() ?? null,
          executed_at_ms: null,
          record_tag: store.tagRecord(listProposalFields(proposal)),
        })
        .execute();
      await changeCounts(
        db,
        [...listCountedLists(proposal, ""), ...listCountedLists(proposal, proposal.status)],
        1,
      );
    },
    async addSignature(transaction, proposal, signer, signature) {
      const { proposalId } = proposal;
      await transaction.db
        .insertInto("defi_signatures")
        .values({ proposal_id: proposalId, signer, signature })
        .execute();
      const changed = { ...proposal, signedBy: [...proposal.signedBy, signer] };
      await update(transaction, changed);
      return changed;
    },
    async markExecuted(transaction, proposal, now) {
      const changed: Proposal = { ...proposal, status: "EXECUTED", executedAt: now };
      await update(transaction, changed);
      await changeCounts(transaction.db, listCountedLists(proposal, proposal.status), -1);
      await changeCounts(transaction.db, listCountedLists(changed, changed.status), 1);
      return changed;
    },
    async readSignatures(proposalId) {
      const rows = await store.reader
        .selectFrom("defi_signatures")
        .selectAll()
        .where("proposal_id", "=", proposalId)
        .execute();
      return new Map(rows.map(({ signer, signature }) => [signer, signature]));
    },
  };
}

/** The lists of a status that a proposal is in: of all wallets, and of its own. */
function listCountedLists(proposal: Proposal, status: string): string[] {
  const { walletId } = proposal;
  return countedLists([proposalList({ walletId: "", status }), proposalList({ walletId, status })], proposal);
}

/** All that a wallet's tag binds; in this order for the life of a store. So are those below. */
function listWalletFields({ walletId, threshold, signers, owner, createdAt }: MultisigWallet) {
  return ["defi_wallets", walletId, threshold, JSON.stringify(signers), owner, createdAt.getTime()];
}

function listSignerFields({ walletId, address, publicKey, isServerHeld }: Signer) {
  return ["defi_signers", walletId, address, publicKey, isServerHeld ? 1 : 0];
}

function listProposalFields(proposal: Proposal): (string | number | Uint8Array)[] {
  return [
    "defi_proposals",
    proposal.proposalId,
    proposal.walletId,
    proposal.data,
    proposal.title,
    proposal.threshold,
    proposal.status,
    JSON.stringify(proposal.signedBy),
    proposal.owner,
    proposal.createdAt.getTime(),
    proposal.expiresAt?.getTime() ?? "",
    proposal.executedAt?.getTime() ?? "",
  ];
}

function toWallet(row: DefiWalletsTable): MultisigWallet {
  return {
    walletId: row.wallet_id,
    threshold: readInt32(row.threshold),
    signers: readAddresses(row.signers),
    owner: row.owner,
    createdAt: readTime(row.created_at_ms),
  };
}

function toSigner(row: DefiSignersTable): Signer {
  return {
    walletId: row.wallet_id,
    address: row.address,
    publicKey: row.public_key,
    isServerHeld: row.is_kept === 1,
  };
}

function toProposal(row: DefiProposalsTable): Proposal {
  return {
    proposalId: row.proposal_id,
    walletId: row.wallet_id,
    data: row.data,
    title: row.title,
    threshold: readInt32(row.threshold),
    status: row.proposal_status === "EXECUTED" ? "EXECUTED" : "PENDING",
    signedBy: readAddresses(row.signed_by),
    owner: row.owner,
    createdAt: readTime(row.created_at_ms),
    expiresAt: readOptionalTime(row.expires_at_ms),
    executedAt: readOptionalTime(row.executed_at_ms),
  };
}

/** What was changed behind our back may be no JSON; its tag tells then. */
function readAddresses(json: string): string[] {
  try {
    const parsed: unknown = JSON.parse(json);
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    return [];
  }
}
