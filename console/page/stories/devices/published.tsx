/** The caller's repositories of The Update Framework: what they publish, and when their metadata expire. */
import { type Repository, RepositoryService, type Target } from "#gen/tuf/repository_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { type Column, RecordTable } from "../../parts/record-table.tsx";
import { code, evidence, hint } from "../../parts/show.tsx";
import { settings } from "../../settings.ts";
import { formatMinute } from "../../time.ts";

/** Repositories to read: those that expire first. */
const maxRepositories = 4;
const shownRoles = 16;

/** A repository with its roles and targets. */
export interface Published {
  readonly repository: Repository;
  readonly targets: readonly Target[];
}

/** @returns undefined if the server has no repositories */
export async function readPublished({ call }: Caller): Promise<readonly Published[] | undefined> {
  if (!settings.services.has(RepositoryService.typeName)) return undefined;
  const { listRepositories, getRepository, listTargets } = RepositoryService.method;
  const { repositories } = await call(listRepositories, {});
  const first = repositories.filter(({ damaged }) => damaged !== true).sort(byExpiry);
  const read = first.slice(0, maxRepositories).map(async (listed) => {
    const name = { repository: listed.repository };
    const { repository = listed } = await call(getRepository, name);
    const { targets } = await call(listTargets, name);
    return { repository, targets: targets.filter(({ targetStatus }) => targetStatus !== "DRAFT") };
  });
  return Promise.all(read);
}

type Expiring = Pick<Repository, "expiresAt">;

/** Sorts what is not published yet last. */
function byExpiry(one: Expiring, other: Expiring): number {
  const [a = Infinity, b = Infinity] = [one, other].map(
    ({ expiresAt }) => expiresAt && Number(expiresAt.seconds),
  );
  return a === b ? 0 : a - b;
}

function listRoles(published: readonly Published[]) {
  return published
    .flatMap(({ repository: { repository, roles } }) => roles.map((role) => ({ repository, ...role })))
    .sort(byExpiry);
}

const roleColumns: readonly Column<ReturnType<typeof listRoles>[number]>[] = [
  { title: "Role", wraps: true, shows: ({ role, repository }) => `${role} of ${repository}` },
  { title: "Metadata", shows: ({ version }) => (version === 0 ? "not published" : `version ${version}`) },
  { title: "Expires (UTC)", shows: ({ expiresAt }) => formatMinute(expiresAt) },
];

export function showRoles(published: readonly Published[] | undefined) {
  if (published === undefined) return hint("This server publishes no firmware with TUF.");
  const roles = listRoles(published);
  const [first] = roles;
  if (first === undefined) return hint("You have no TUF repository; ", code("qsp tuf init"), " creates one.");
  return evidence(
    `TUF metadata: the ${first.role} of ${first.repository} expires first`,
    <RecordTable
      label="Roles of TUF repositories"
      columns={roleColumns}
      rows={roles.slice(0, shownRoles)}
      identify={({ repository, role }) => `${repository} ${role}`}
    />,
  );
}
