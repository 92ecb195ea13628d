/** tuf.RepositoryService: unpack, call, pack. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { readCaller, readPrincipal } from "../../src/identity/principal.ts";
import { readList } from "../../src/services/fields.ts";
import { createRepository } from "./create-repository.ts";
import { removeDelegation, setDelegation } from "./delegations.ts";
import type { TufDeps } from "./deps.ts";
import { getFile } from "./get-file.ts";
import { requireKeyScopes } from "./key-scopes.ts";
import { packRepository } from "./pack.ts";
import { proposeRoot } from "./propose-root.ts";
import { publish } from "./publish.ts";
import { publishRoot } from "./publish-root.ts";
import { packWithRoles } from "./read-repository.ts";
import { findProposedRoot, packProposedRoot } from "./root-proposal.ts";
import { signRoot } from "./sign-root.ts";
import { listTargets, removeTarget } from "./targets.ts";
import { readAnnouncedBytes, uploadTarget } from "./upload-target.ts";

export function repositoryService(deps: TufDeps): ServiceImpl<typeof RepositoryService> {
  const { tuf } = deps;
  return {
    createRepository: (req, context) => {
      requireKeyScopes(context, [req.targetsKey, req.snapshotKey, req.timestampKey]);
      return createRepository(deps, req, readCaller(context));
    },
    getRepository: async ({ repository }, context) => {
      const found = await tuf.findRepository(repository, { principal: readPrincipal(context) });
      return { repository: await packWithRoles(deps, found) };
    },
    listRepositories: async (fields, context) => {
      const { rows, ...page } = await readList(tuf.repositories, fields, {
        principal: readPrincipal(context),
      });
      const repositories = rows.map(({ record, isIntact }) =>
        isIntact ? packRepository(record) : { repository: record.repository, damaged: true },
      );
      return { ...page, repositories };
    },
    proposeRoot: (req, context) => {
      const handles = [req.targetsKey, req.snapshotKey, req.timestampKey];
      requireKeyScopes(context, handles, req.newKeys.length > 0);
      return proposeRoot(deps, req, readCaller(context));
    },
    getRootProposal: async ({ repository, proposalId }, context) => {
      const found = await tuf.findRepository(repository, { principal: readPrincipal(context) });
      return {
        proposal: await packProposedRoot(deps, found, await findProposedRoot(deps, found, proposalId)),
      };
    },
    signRoot: (req, context) => signRoot(deps, req, readCaller(context)),
    publishRoot: (req, context) => publishRoot(deps, req, readCaller(context)),
    setDelegation: (req, context) => {
      requireKeyScopes(context, [req.key]);
      return setDelegation(deps, req, readCaller(context));
    },
    removeDelegation: (req, context) => removeDelegation(deps, req, readCaller(context)),
    uploadTarget: (parts, context) =>
      uploadTarget(deps, parts, readCaller(context), readAnnouncedBytes(context)),
    removeTarget: (req, context) => removeTarget(deps, req, readCaller(context)),
    listTargets: (req, context) => listTargets(deps, req, readCaller(context)),
    publish: (req, context) => publish(deps, req, readCaller(context)),
    getFile: (req, context) => getFile(deps, req, context),
  };
}
