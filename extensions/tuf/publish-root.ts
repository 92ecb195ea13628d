import { type PublishRootRequest, PublishRootResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { refuse } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { intact } from "../../src/records/table-declaration.ts";
import { parseCanonical } from "./canonical-json.ts";
import { asOwner, type TufDeps } from "./deps.ts";
import { isSignedBy, type TufSignature } from "./keys.ts";
import { type OnlineRole, onlineRoles, packFile, toHex } from "./metadata.ts";
import { prepare, publishPrepared, publishUnchanged } from "./prepare.ts";
import { packWithRoles } from "./read-repository.ts";
import { reasons } from "./reasons.ts";
import { fromKeyIds } from "./role-keys.ts";
import {
  findProposedRoot,
  type ProposedRoot,
  type RootWallets,
  readRootWallets,
  requireNext,
} from "./root-proposal.ts";
import { type MetadataFile, toMetadataFile } from "./store.ts";
import type { Repository } from "./tables.ts";
import { findTufKeyId, type RootWallet, toSignerKey } from "./wallets.ts";

/**
 * Publishes a proposed root, and new versions of the metadata whose key it changes.
 *
 * @throws REPOSITORY_NOT_FOUND, PROPOSAL_NOT_FOUND, PROPOSAL_NOT_EXECUTED, PROPOSAL_EXPIRED, ROOT_OUTDATED,
 *   THRESHOLD_NOT_REACHED, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED, and the errors of prepare
 */
export async function publishRoot(
  deps: TufDeps,
  { repository: name, proposalId }: PublishRootRequest,
  caller: CallerInput,
) {
  const { tuf } = deps;
  const { principal } = caller;
  await tuf.findRepository(name, { principal });
  return publishUnchanged(deps, caller, PublishRootResponseSchema, async (write) => {
    const repository = await tuf.findRepository(name);
    const who = await asOwner(deps, repository, caller);
    const proposed = await findProposedRoot(deps, repository, proposalId);
    requireExecuted(proposed);
    requireNext(deps, repository, proposed);
    const root = await signRoot(deps, repository, proposed);
    const { version: rootVersion, walletId, targetsKeyId, snapshotKeyId, timestampKeyId } = proposed.record;
    const change = { rootVersion, walletId, targetsKeyId, snapshotKeyId, timestampKeyId };
    const next = { ...repository, ...change };
    const prepared = await prepare(deps, who, { repository: next, roles: findRoles(repository, next) });
    caller.signal.throwIfAborted();
    return write(async (transaction) => {
      const published = await publishPrepared(deps, transaction, repository, prepared, change);
      if (published === undefined) return undefined;
      await tuf.insertMetadata(transaction, root);
      await tuf.rootProposals.update(transaction, intact(proposed.record), { isPublished: true });
      return { repository: await packWithRoles(deps, published, transaction) };
    });
  });
}

function requireExecuted({ proposal: { proposalId, status } }: ProposedRoot): void {
  if (status === "EXECUTED") return;
  const advice = "let enough signers vote, and execute it with defi.DefiService/ExecuteProposal";
  throw refuse(reasons.proposalNotExecuted, `proposal ${proposalId} is not executed; ${advice}`, {
    proposalId,
  });
}

/**
 * Verifies the signatures over a root, and joins them to it (TUF specification, section 5.3: the thresholds of
 * both the current and the new root count).
 *
 * @throws THRESHOLD_NOT_REACHED, RecordDamagedError
 */
async function signRoot(
  deps: TufDeps,
  repository: Repository,
  proposed: ProposedRoot,
): Promise<MetadataFile> {
  const { record, proposal } = proposed;
  const wallets = await readRootWallets(deps, repository, proposed);
  if (repository.rootVersion > 0 && repository.walletId !== wallets.current.wallet.walletId)
    throw new RecordDamagedError(`wallet of proposal ${record.proposalId}`);
  const signed = await verifySignatures(deps, proposed, wallets);
  requireThreshold("current", proposed, wallets.current, signed);
  requireThreshold("proposed", proposed, wallets.next, signed);
  const signatures: TufSignature[] = [...signed.values()].sort((a, b) => (a.keyid < b.keyid ? -1 : 1));
  const content = packFile(parseCanonical(proposal.data), signatures);
  const { repository: name, version, expiresAt } = record;
  const about = { repository: name, role: "root", version, publishedAt: deps.now(), expiresAt, sequence: 0 };
  return toMetadataFile(about, content);
}

/**
 * @returns the signatures by signer address
 * @throws RecordDamagedError if one does not verify: SignRoot verified all
 */
async function verifySignatures(
  { tuf, provider }: TufDeps,
  { record: { proposalId }, proposal }: ProposedRoot,
  { current, next }: RootWallets,
): Promise<ReadonlyMap<string, TufSignature>> {
  const signers = new Map([...current.signers, ...next.signers].map((signer) => [signer.address, signer]));
  const verified = new Map<string, TufSignature>();
  for (const [address, signature] of await tuf.readRootSignatures(proposalId)) {
    const signer = signers.get(address);
    if (signer === undefined || !(await isSignedBy(provider, toSignerKey(signer), proposal.data, signature)))
      throw new RecordDamagedError(`signature of ${address} over the root in proposal ${proposalId}`);
    verified.set(address, { keyid: findTufKeyId(signer), sig: toHex(signature) });
  }
  return verified;
}

function requireThreshold(
  which: string,
  { record: { proposalId } }: ProposedRoot,
  { wallet: { threshold, signers } }: RootWallet,
  signed: ReadonlyMap<string, TufSignature>,
): void {
  const count = signers.filter((signer) => signed.has(signer)).length;
  if (count >= threshold) return;
  throw refuse(
    "THRESHOLD_NOT_REACHED",
    `${count} of the ${threshold} required signers of the ${which} root have signed the root in proposal ${proposalId}; let others sign with SignRoot`,
    { proposalId, root: which, signatureCount: String(count), threshold: String(threshold) },
  );
}

/** The roles that need new versions, because their key has changed or because they name a new version. */
function findRoles(before: Repository, after: Repository): ReadonlySet<OnlineRole> {
  const [old, current] = [fromKeyIds(before), fromKeyIds(after)];
  const first = before.rootVersion === 0 ? 0 : onlineRoles.findIndex((role) => old[role] !== current[role]);
  return new Set(first < 0 ? [] : onlineRoles.slice(first));
}
