/** This extension's rows of the access table test. */
import { randomUUID } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { RepositoryService, type RootProposal } from "#gen/tuf/repository_service_pb.ts";
import type { Person } from "../../../test/access/access-server.ts";
import { type Records, type Row, row } from "../../../test/access/rpc-rows.ts";
import { present } from "../../../test/services/answers.ts";
import { bytesOf } from "../../../test/support/bytes.ts";
import { createSigners, publishRoot, type RootSigner, toSignRequest } from "./tuf-server.ts";

const { method } = RepositoryService;
const hidden = { hidden: "REPOSITORY_NOT_FOUND" } as const;
const role = "esp32";
const path = "esp32/app.bin";

const connect = ({ transport }: Person) => ({
  tuf: createClient(RepositoryService, transport),
  defi: createClient(DefiService, transport),
});

/** A repository with one signer, and the proposal of its first root. */
interface Made {
  readonly repository: string;
  readonly signer: RootSigner;
  readonly proposal: RootProposal;
}

async function make(owner: Person): Promise<Made> {
  const clients = connect(owner);
  const repository = `r-${randomUUID()}`;
  const { walletId, signers } = await createSigners(clients, 1, 1);
  await clients.tuf.createRepository({ repository, walletId });
  const { proposal } = await clients.tuf.proposeRoot({ repository });
  return { repository, signer: present(signers[0]), proposal: present(proposal) };
}

/** Makes a proposal that can be published. */
async function makeSigned(owner: Person) {
  const { repository, signer, proposal } = await make(owner);
  const { tuf, defi } = connect(owner);
  const { proposalId } = proposal;
  await tuf.signRoot(toSignRequest(signer, proposal));
  await defi.executeProposal({ proposalId });
  return { repository, proposalId };
}

const published = new WeakMap<Records, Promise<Made>>();

/** Publishes a repository once for a test's records. */
function madeFor(records: Records): Promise<Made> {
  const known = published.get(records) ?? makePublished(records.owner);
  published.set(records, known);
  return known;
}

async function makePublished(owner: Person): Promise<Made> {
  const made = await make(owner);
  await publishRoot(connect(owner), made.proposal, [made.signer]);
  return made;
}

async function* upload(repository: string) {
  yield { repository, path, content: { data: bytesOf("firmware") } };
}

const ofPublished = async (records: Records) => ({ repository: (await madeFor(records)).repository });

export const rows: readonly Row[] = [
  row(
    method.createRepository,
    async ({ owner }) => ({
      repository: `r-${randomUUID()}`,
      walletId: (await createSigners(connect(owner), 1, 1)).walletId,
    }),
    // A repository belongs to its creator, and so must the wallet.
    { hidden: "WALLET_NOT_FOUND", isHiddenFromAdmins: true },
  ),
  row(method.getRepository, ofPublished, hidden),
  row(method.listRepositories, () => ({})),
  row(method.proposeRoot, ofPublished, hidden),
  row(
    method.getRootProposal,
    async (records) => {
      const { repository, proposal } = await madeFor(records);
      return { repository, proposalId: proposal.proposalId };
    },
    hidden,
  ),
  row(
    method.signRoot,
    async ({ owner }) => {
      const { signer, proposal } = await make(owner);
      return toSignRequest(signer, proposal);
    },
    hidden,
  ),
  row(method.publishRoot, ({ owner }) => makeSigned(owner), hidden),
  row(method.setDelegation, async (records) => ({ ...(await ofPublished(records)), role }), hidden),
  row(
    method.removeDelegation,
    async (records) => {
      const { repository } = await madeFor(records);
      await connect(records.owner).tuf.setDelegation({ repository, role });
      return { repository, role };
    },
    hidden,
  ),
  row(
    method.uploadTarget,
    async (records) => {
      const { repository } = await madeFor(records);
      return [{ repository, path, content: { data: bytesOf("firmware") } }];
    },
    hidden,
  ),
  row(
    method.removeTarget,
    async (records) => {
      const { repository } = await madeFor(records);
      await connect(records.owner).tuf.uploadTarget(upload(repository));
      return { repository, path };
    },
    hidden,
  ),
  row(method.listTargets, ofPublished, hidden),
  row(method.publish, ofPublished, hidden),
  row(method.getFile, async (records) => ({
    ...(await ofPublished(records)),
    path: "metadata/timestamp.json",
  })),
];
