/** Describes a repository with its roles. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import type { RoleSchema } from "#gen/tuf/repository_service_pb.ts";
import { isMlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import type { FindOptions } from "../../src/records/record-table.ts";
import type { TufDeps } from "./deps.ts";
import { toTufKey } from "./keys.ts";
import { type OnlineRole, onlineRoles } from "./metadata.ts";
import { packRepository, type RepositoryMessage } from "./pack.ts";
import { fromKeyIds } from "./role-keys.ts";
import type { Delegation, Metadata, Repository } from "./tables.ts";
import { countChanges, countPublished } from "./targets.ts";
import { findTufKeyId, readWallet } from "./wallets.ts";

type RoleMessage = MessageInitShape<typeof RoleSchema>;

/** Maximum proposals to name. */
const maxProposals = 100;

/**
 * Packs a repository with its roles.
 *
 * @param options.db a transaction's database, for an answer about its changes
 */
export async function packWithRoles(
  deps: TufDeps,
  repository: Repository,
  { db }: Pick<FindOptions, "db"> = {},
): Promise<RepositoryMessage> {
  const { tuf } = deps;
  const { repository: name, rootVersion } = repository;
  const newest = await tuf.readNewest(name, db);
  const delegations = await tuf.listDelegations(name, db);
  const { added, removed } = await countChanges(deps, repository, db);
  const proposals = await tuf.rootProposals.listWhere(
    sql<boolean>`repository = ${name} and version = ${rootVersion + 1}`,
    sql`position`,
    maxProposals,
  );
  const isRead = ({ role }: Metadata) =>
    !delegations.some((delegation) => delegation.role === role && delegation.publishedKeyId === undefined);
  const expiries = [...newest.values()].filter(isRead).map(({ expiresAt }) => expiresAt.getTime());
  return {
    ...packRepository(repository),
    roles: [
      await packRoot(deps, repository, newest.get("root")),
      ...(await Promise.all(onlineRoles.map((role) => packOnline(deps, repository, role, newest.get(role))))),
      ...(await Promise.all(
        delegations
          .filter(({ isRemoved, publishedKeyId }) => !isRemoved || publishedKeyId !== undefined)
          .map((delegation) => packDelegation(deps.keys.find, delegation, newest.get(delegation.role))),
      )),
    ],
    rootProposalIds: proposals.map(({ record: { proposalId } }) => proposalId),
    targetCount: await countPublished(deps, repository, db),
    changeCount: added + removed,
    ...(expiries.length > 0 && { expiresAt: timestampFromDate(new Date(Math.min(...expiries))) }),
  };
}

async function packRoot(
  deps: TufDeps,
  { walletId, owner, rootVersion }: Repository,
  file: Metadata | undefined,
): Promise<RoleMessage> {
  const { wallet, signers } = await readWallet(deps, walletId, owner);
  return {
    ...packFile("root", file),
    threshold: wallet.threshold,
    tufKeyIds: rootVersion === 0 ? [] : signers.map(findTufKeyId),
  };
}

async function packOnline(
  deps: TufDeps,
  repository: Repository,
  role: OnlineRole,
  file: Metadata | undefined,
): Promise<RoleMessage> {
  const keyId = fromKeyIds(repository)[role];
  const { state, tufKeyIds } = await readKey(deps.keys.find, keyId);
  return {
    ...packFile(role, file),
    keyId,
    keyState: state,
    threshold: 1,
    tufKeyIds: repository.rootVersion === 0 ? [] : tufKeyIds,
  };
}

type FindKey = TufDeps["keys"]["find"];

/**
 * @param findKey finds the role's keys, also one that a transaction has just created
 * @param file its newest metadata
 */
export async function packDelegation(
  findKey: FindKey,
  { role, keyId, isRemoved, publishedKeyId }: Delegation,
  file: Metadata | undefined,
): Promise<RoleMessage> {
  return {
    ...packFile(role, file),
    keyId,
    keyState: (await readKey(findKey, keyId)).state,
    threshold: 1,
    tufKeyIds: publishedKeyId === undefined ? [] : (await readKey(findKey, publishedKeyId)).tufKeyIds,
    hasChanged: publishedKeyId !== (isRemoved ? undefined : keyId),
  };
}

function packFile(role: string, file: Metadata | undefined): RoleMessage {
  if (file === undefined) return { role };
  const { version, length, expiresAt } = file;
  return { role, version, length, expiresAt: timestampFromDate(expiresAt) };
}

/** Returns the state of a key and its TUF key ID. */
async function readKey(findKey: FindKey, keyId: string): Promise<{ state: string; tufKeyIds: string[] }> {
  const key = await findKey(keyId);
  // A key that was changed outside the server cannot sign either.
  if (key?.isIntact !== true || !isMlDsaAlgorithm(key.record.algorithm)) return { state: "", tufKeyIds: [] };
  const { algorithm, publicKey, state } = key.record;
  return { state, tufKeyIds: [toTufKey({ algorithm, publicKey }).tufKeyId] };
}
