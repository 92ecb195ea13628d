/** A complete server with a repository, its root signers, and clients. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { type Client, createClient } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { RepositoryService, type RootProposal } from "#gen/tuf/repository_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { present } from "../../../test/services/answers.ts";
import { startUnderTest } from "../../../test/services/app-under-test.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { settings } from "../settings.ts";

/** The repository of the tests. */
export const repository = "firmware";

/** The clients that a repository's owner needs. */
export interface TufClients {
  readonly tuf: Client<typeof RepositoryService>;
  readonly defi: Client<typeof DefiService>;
}

/** A server with clients. */
export type TufServer = Awaited<ReturnType<typeof startTufServer>>;

/** Starts a server, which stops with the test. */
export async function startTufServer(...flags: readonly string[]) {
  const dataDir = makeTemporaryDirectory();
  const config = readConfig(["--port", "0", "--data-dir", dataDir, ...flags], {}, [settings]);
  const server = await startUnderTest(config, onTestFinished);
  return {
    ...server,
    dataDir,
    tuf: createClient(RepositoryService, server.grpc),
    defi: createClient(DefiService, server.grpc),
  };
}

/** A root signer, who keeps the key. */
export interface RootSigner {
  readonly signer: string;
  readonly privateKey: KeyObject;
}

/** Creates a wallet with signers. */
export async function createSigners(
  { defi }: Pick<TufClients, "defi">,
  count: number,
  threshold: number,
): Promise<{ readonly walletId: string; readonly signers: readonly RootSigner[] }> {
  const pairs = Array.from({ length: count }, () => generateKeyPairSync("ml-dsa-65"));
  const signerPublicKeys = pairs.map(({ publicKey }) =>
    publicKey.export({ format: "der", type: "spki" }).subarray(-1952),
  );
  const { walletId, signers } = await defi.createMultisig({ signerPublicKeys, threshold });
  return {
    walletId,
    signers: signers.map((signer, i) => ({ signer, privateKey: present(pairs[i]).privateKey })),
  };
}

/** Signs a root as TAP 21 defines it, independently of our code. */
export function signMetadata({ privateKey }: RootSigner, metadata: Uint8Array): Uint8Array {
  const digest = createHash("sha512").update(metadata).digest();
  return sign(null, Buffer.concat([Buffer.from("tuf"), Buffer.from([1]), digest]), privateKey);
}

/** Builds a signer's request to sign a proposed root. */
export function toSignRequest(
  signer: RootSigner,
  { repository, proposalId, metadata, signingHash }: RootProposal,
  hasVote = true,
) {
  return {
    repository,
    proposalId,
    signer: signer.signer,
    rootSignature: signMetadata(signer, metadata),
    ...(hasVote && { vote: sign(null, signingHash, signer.privateKey) }),
  };
}

/** Proposes a root. */
export async function proposeRoot(
  { tuf }: Pick<TufClients, "tuf">,
  request: Parameters<TufClients["tuf"]["proposeRoot"]>[0] = {},
): Promise<RootProposal> {
  return present((await tuf.proposeRoot({ repository, ...request })).proposal);
}

/** Lets signers vote and sign, and publishes the root. */
export async function publishRoot(
  { tuf, defi }: TufClients,
  proposal: RootProposal,
  current: readonly RootSigner[],
  added: readonly RootSigner[] = [],
) {
  const { repository, proposalId } = proposal;
  for (const signer of current) await tuf.signRoot(toSignRequest(signer, proposal));
  for (const signer of added) await tuf.signRoot(toSignRequest(signer, proposal, false));
  await defi.executeProposal({ proposalId });
  return present((await tuf.publishRoot({ repository, proposalId })).repository);
}

/** Creates the repository, whose root 2 of 3 signers sign, and publishes its first root. */
export async function openRepository(server: TufClients) {
  const made = await createSigners(server, 3, 2);
  await server.tuf.createRepository({ repository, walletId: made.walletId });
  await publishRoot(server, await proposeRoot(server), made.signers.slice(0, 2));
  return made;
}
