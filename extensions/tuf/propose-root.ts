import { type ProposeRootRequest, ProposeRootResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { messageCodec } from "../../src/records/idempotency.ts";
import { storeProposal } from "../../src/services/defi/create-proposal.ts";
import { proposalQuota } from "../../src/services/defi/tables.ts";
import { readTime } from "../../src/services/fields.ts";
import { asOwner, type TufDeps } from "./deps.ts";
import { addSeconds, type Head, hashContent, type OnlineRole, onlineRoles } from "./metadata.ts";
import { reasons } from "./reasons.ts";
import {
  findGivenKeys,
  findRoleKey,
  followRotations,
  fromKeyIds,
  type StoredRoleKey,
  toKeyIds,
  withNewKeys,
} from "./role-keys.ts";
import { packProposedRoot } from "./root-proposal.ts";
import type { Repository, RootProposalRecord } from "./tables.ts";
import { encodeRoot, readRootWallet } from "./wallets.ts";

/**
 * Proposes the next root in the wallet of the current one.
 *
 * @throws REPOSITORY_NOT_FOUND, WALLET_NOT_FOUND, WALLET_UNSUITABLE, ROOT_TOO_LARGE, ROOT_OUTDATED,
 *   IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED, and the errors of findRoleKey
 */
export async function proposeRoot(deps: TufDeps, request: ProposeRootRequest, caller: CallerInput) {
  const { store, tuf } = deps;
  const repository = await tuf.findRepository(request.repository, caller);
  const who = await asOwner(deps, repository, caller);
  return store.runIdempotent(
    caller.idempotentCall,
    messageCodec(ProposeRootResponseSchema),
    async (write) => {
      const next = await readRootWallet(deps, request.walletId || repository.walletId, repository.owner);
      const current =
        repository.rootVersion === 0
          ? next
          : await readRootWallet(deps, repository.walletId, repository.owner);
      const head: Head = {
        version: repository.rootVersion + 1,
        expiresAt: readExpiry(deps, repository, request),
      };
      await store.requireRoom(proposalQuota, repository.owner);
      const fresh = onlineRoles.filter((role) => request.newKeys.includes(role));
      const given = await findGivenKeys(deps, who, request);
      const kept: Partial<Record<OnlineRole, StoredRoleKey>> = {};
      for (const role of onlineRoles)
        if (!fresh.includes(role))
          kept[role] =
            given[role] ??
            (await findRoleKey(deps, who, await followRotations(deps, fromKeyIds(repository)[role])));
      return withNewKeys(deps, who, repository, fresh, (storeKeys) =>
        write(async (transaction) => {
          const { rootVersion } = await tuf.findRepository(repository.repository, transaction);
          if (rootVersion !== repository.rootVersion) throw publishedMeanwhile(repository, rootVersion);
          const keys = { ...kept, ...(await storeKeys(transaction)) };
          const data = encodeRoot(head, next, keys);
          const title = `TUF root ${head.version} of ${repository.repository}`;
          const proposal = await storeProposal(deps, transaction, current.wallet, {
            data,
            title,
            expiresAt: head.expiresAt,
          });
          const record: RootProposalRecord = {
            proposalId: proposal.proposalId,
            repository: repository.repository,
            ...head,
            walletId: next.wallet.walletId,
            ...toKeyIds(keys),
            sha256: hashContent(data),
            isPublished: false,
          };
          await tuf.rootProposals.insert(transaction, record);
          return { proposal: await packProposedRoot(deps, repository, { record, proposal }) };
        }),
      );
    },
  );
}

function readExpiry({ now }: TufDeps, { rootSeconds }: Repository, { expiresAt }: ProposeRootRequest): Date {
  if (expiresAt === undefined) return addSeconds(now(), rootSeconds);
  const expiry = addSeconds(readTime("expiresAt", expiresAt), 0);
  if (expiry <= now())
    throw refuseField("expiresAt", "is not in the future; send a later time, in whole seconds");
  return expiry;
}

function publishedMeanwhile({ repository }: Repository, rootVersion: number): Error {
  return refuse(
    reasons.rootOutdated,
    `root ${rootVersion} of ${repository} was published in the meantime; propose root ${rootVersion + 1}`,
    { repository, rootVersion: String(rootVersion) },
  );
}
