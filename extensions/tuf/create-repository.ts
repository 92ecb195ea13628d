import {
  type CreateRepositoryRequest,
  CreateRepositoryResponseSchema,
} from "#gen/tuf/repository_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { messageCodec } from "../../src/records/idempotency.ts";
import type { TufDeps } from "./deps.ts";
import { addSeconds, onlineRoles } from "./metadata.ts";
import { packRepository } from "./pack.ts";
import { findGivenKeys, toKeyIds, withNewKeys } from "./role-keys.ts";
import { type Repository, repositoryQuota } from "./tables.ts";
import { encodeRoot, readRootWallet } from "./wallets.ts";

/** Seconds for which new metadata are valid by default. */
const defaultValidity = { root: 31_536_000, targets: 7_776_000, snapshot: 604_800, timestamp: 86_400 };

/**
 * Creates a repository, with new keys for the roles that have none.
 *
 * @throws NAME_TAKEN, WALLET_NOT_FOUND, WALLET_UNSUITABLE, ROOT_TOO_LARGE, IDEMPOTENCY_KEY_REUSED,
 *   QUOTA_EXCEEDED, and the errors of findRoleKey
 */
export function createRepository(
  deps: TufDeps,
  request: CreateRepositoryRequest,
  { principal, owner, signal, idempotentCall }: CallerInput,
) {
  const { store, tuf, now } = deps;
  const { repository, walletId, validity } = request;
  const who = { principal: { ...principal, owner }, signal };
  return store.runIdempotent(idempotentCall, messageCodec(CreateRepositoryResponseSchema), async (write) => {
    await requireNameFree(deps, repository);
    await store.requireRoom(repositoryQuota, owner);
    const wallet = await readRootWallet(deps, walletId, owner);
    const given = await findGivenKeys(deps, who, request);
    const missing = onlineRoles.filter((role) => given[role] === undefined);
    return withNewKeys(deps, who, { repository, owner }, missing, (storeKeys) =>
      write(async (transaction) => {
        await requireNameFree(deps, repository, transaction);
        const keys = { ...given, ...(await storeKeys(transaction)) };
        const record: Repository = {
          repository,
          owner,
          walletId,
          ...toKeyIds(keys),
          rootSeconds: validity?.rootSeconds ?? defaultValidity.root,
          targetsSeconds: validity?.targetsSeconds ?? defaultValidity.targets,
          snapshotSeconds: validity?.snapshotSeconds ?? defaultValidity.snapshot,
          timestampSeconds: validity?.timestampSeconds ?? defaultValidity.timestamp,
          rootVersion: 0,
          sequence: 0,
          publishedSequence: 0,
          revision: 0,
          renewAt: undefined,
          createdAt: now(),
        };
        // Refuses signers who cannot fit into a root, while nothing is committed.
        encodeRoot({ version: 1, expiresAt: addSeconds(now(), record.rootSeconds) }, wallet, keys);
        await tuf.repositories.insert(transaction, record);
        return { repository: packRepository(record) };
      }),
    );
  });
}

/** @throws NAME_TAKEN */
async function requireNameFree(
  { tuf }: TufDeps,
  repository: string,
  options: Parameters<TufDeps["tuf"]["repositories"]["find"]>[1] = {},
): Promise<void> {
  if ((await tuf.repositories.find({ repository }, options)) === undefined) return;
  throw refuse("NAME_TAKEN", `the name ${repository} is taken on this server; choose a different one`, {
    name: repository,
  });
}
