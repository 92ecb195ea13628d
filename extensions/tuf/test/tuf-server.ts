/** A complete server with a repository, its root signers, and clients. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import {
  type CreateRepositoryRequestSchema,
  RepositoryService,
  type RootProposal,
} from "#gen/tuf/repository_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { present } from "../../../test/services/answers.ts";
import { openConnections, serveApp } from "../../../test/services/app-under-test.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { settings } from "../settings.ts";

/** A server with clients. */
export interface TufServer {
  readonly url: string;
  readonly dataDir: string;
  readonly tuf: Client<typeof RepositoryService>;
  readonly defi: Client<typeof DefiService>;
  readonly kms: Client<typeof KmsService>;
}

/** Starts a server, which stops with the test. */
export async function startTufServer(...flags: readonly string[]): Promise<TufServer> {
  const dataDir = makeTemporaryDirectory();
  const app = await serveApp(readConfig(["--port", "0", "--data-dir", dataDir, ...flags], {}, [settings]));
  const { grpc, disconnect } = openConnections(app.url);
  onTestFinished(async () => {
    disconnect();
    app.server.destroy();
    await app.close();
  });
  return {
    url: app.url,
    dataDir,
    tuf: createClient(RepositoryService, grpc),
    defi: createClient(DefiService, grpc),
    kms: createClient(KmsService, grpc),
  };
}

/** A root signer, who keeps the key. */
export interface RootSigner {
  readonly signer: string;
  readonly privateKey: KeyObject;
}

/** A wallet with its signers. */
export interface Signers {
  readonly walletId: string;
  readonly signers: readonly RootSigner[];
}

export async function createSigners(
  { defi }: Pick<TufServer, "defi">,
  count: number,
  threshold: number,
): Promise<Signers> {
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

/** Lets signers vote and sign, and publishes the root. */
export async function publishRoot(
  { tuf, defi }: Pick<TufServer, "tuf" | "defi">,
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

/** Creates a repository whose root 2 of 3 signers sign, and publishes its first root. */
export async function openRepository(
  server: Pick<TufServer, "tuf" | "defi">,
  { repository = "firmware", ...more }: MessageInitShape<typeof CreateRepositoryRequestSchema> = {},
): Promise<Signers> {
  const signers = await createSigners(server, 3, 2);
  await server.tuf.createRepository({ repository, walletId: signers.walletId, ...more });
  const { proposal } = await server.tuf.proposeRoot({ repository });
  await publishRoot(server, present(proposal), signers.signers.slice(0, 2));
  return signers;
}
