import { type PublishRequest, PublishResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { publishDelegations } from "./delegations.ts";
import { asOwner, type TufDeps } from "./deps.ts";
import { onlineRoles } from "./metadata.ts";
import { prepare, publishPrepared, publishUnchanged } from "./prepare.ts";
import { packWithRoles } from "./read-repository.ts";
import { reasons } from "./reasons.ts";
import type { Repository } from "./tables.ts";
import { countChanges } from "./targets.ts";

/**
 * Publishes all changes of a repository: new versions of all its metadata except the root.
 *
 * @throws REPOSITORY_NOT_FOUND, ROOT_MISSING, IDEMPOTENCY_KEY_REUSED, and the errors of prepare
 */
export async function publish(deps: TufDeps, { repository: name }: PublishRequest, caller: CallerInput) {
  const { tuf } = deps;
  const { principal } = caller;
  requirePublished(await tuf.findRepository(name, { principal }));
  return publishUnchanged(deps, caller, PublishResponseSchema, async (write) => {
    const repository = await tuf.findRepository(name);
    const counted = await countChanges(deps, repository);
    const roles = new Set(onlineRoles);
    const prepared = await prepare(deps, await asOwner(deps, repository, caller), {
      repository,
      roles,
      withChanges: true,
    });
    caller.signal.throwIfAborted();
    return write(async (transaction) => {
      const change = { publishedSequence: prepared.sequence };
      const published = await publishPrepared(deps, transaction, repository, prepared, change);
      if (published === undefined) return undefined;
      await publishDelegations(deps, transaction, name);
      return { repository: await packWithRoles(deps, published, transaction), ...counted };
    });
  });
}

/** @throws ROOT_MISSING */
export function requirePublished({ repository, rootVersion }: Repository): void {
  if (rootVersion > 0) return;
  throw refuse(
    reasons.rootMissing,
    `repository ${repository} has no root; propose one with ProposeRoot, and publish it`,
    { repository },
  );
}
