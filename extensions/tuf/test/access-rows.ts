/** This extension's rows of the access table test. */
import { randomUUID } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import type { Person } from "../../../test/access/access-server.ts";
import { type Records, type Row, row } from "../../../test/access/rpc-rows.ts";
import { present } from "../../../test/services/answers.ts";
import { bytesOf } from "../../../test/support/bytes.ts";
import { streamOf } from "../../../test/support/streams.ts";
import { createSigners, proposeRoot, publishRoot, toSignRequest } from "./tuf-server.ts";

const { method } = RepositoryService;
const role = "esp32";
const path = "esp32/app.bin";

const connect = ({ transport }: Person) => ({
  tuf: createClient(RepositoryService, transport),
  defi: createClient(DefiService, transport),
});

/** Creates a repository with one signer, and proposes its first root. */
async function make(owner: Person) {
  const clients = connect(owner);
  const repository = `r-${randomUUID()}`;
  const { walletId, signers } = await createSigners(clients, 1, 1);
  await clients.tuf.createRepository({ repository, walletId });
  const proposal = await proposeRoot(clients, { repository });
  return { ...clients, repository, signer: present(signers[0]), proposal };
}

const published = new WeakMap<Records, ReturnType<typeof make>>();

/** Publishes a repository once for a test's records. */
function madeFor(records: Records): ReturnType<typeof make> {
  const publish = async () => {
    const made = await make(records.owner);
    await publishRoot(made, made.proposal, [made.signer]);
    return made;
  };
  const known = published.get(records) ?? publish();
  published.set(records, known);
  return known;
}

/** A row about a repository that only its owner sees. */
const owned: typeof row = (method, request) => row(method, request, { hidden: "REPOSITORY_NOT_FOUND" });
const ofPublished = async (records: Records) => ({ repository: (await madeFor(records)).repository });
const targetIn = ({ repository }: { readonly repository: string }) => ({
  ...{ repository, path },
  content: { data: bytesOf("firmware") },
});

export const rows: readonly Row[] = [
  row(
    method.createRepository,
    async ({ owner }) => ({
      repository: `r-${randomUUID()}`,
      walletId: (await createSigners(connect(owner), 1, 1)).walletId,
    }),
    // A repository belongs to its creator, and so must the wallet.
    { hidden: "WALLET_NOT_FOUND", isHiddenFromAdmins: true, needsMoreScopes: true },
  ),
  owned(method.getRepository, ofPublished),
  row(method.listRepositories, () => ({})),
  owned(method.proposeRoot, ofPublished),
  owned(method.getRootProposal, async (records) => {
    const { repository, proposal } = await madeFor(records);
    return { repository, proposalId: proposal.proposalId };
  }),
  owned(method.signRoot, async ({ owner }) => {
    const { signer, proposal } = await make(owner);
    return toSignRequest(signer, proposal);
  }),
  owned(method.publishRoot, async ({ owner }) => {
    const { tuf, defi, repository, signer, proposal } = await make(owner);
    const { proposalId } = proposal;
    await tuf.signRoot(toSignRequest(signer, proposal));
    await defi.executeProposal({ proposalId });
    return { repository, proposalId };
  }),
  row(method.setDelegation, async (records) => ({ ...(await ofPublished(records)), role }), {
    hidden: "REPOSITORY_NOT_FOUND",
    needsMoreScopes: true,
  }),
  owned(method.removeDelegation, async (records) => {
    const { tuf, repository } = await madeFor(records);
    await tuf.setDelegation({ repository, role });
    return { repository, role };
  }),
  owned(method.uploadTarget, async (records) => [targetIn(await madeFor(records))]),
  owned(method.removeTarget, async (records) => {
    const { tuf, repository } = await madeFor(records);
    await tuf.uploadTarget(streamOf(targetIn({ repository })));
    return { repository, path };
  }),
  owned(method.listTargets, ofPublished),
  owned(method.publish, ofPublished),
  row(method.getFile, async (records) => ({
    ...(await ofPublished(records)),
    path: "metadata/timestamp.json",
  })),
];
