/** `qsp tuf`: the root, which its signers sign with keys that they hold. */
import { create } from "@bufbuild/protobuf";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { RepositoryService, type RootProposal } from "#gen/tuf/repository_service_pb.ts";
import { unaryVerb } from "../../src/cli/call-verbs.ts";
import { inputFile } from "../../src/cli/command-line/options.ts";
import { readTime } from "../../src/cli/command-line/time-options.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { distrustError, exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { readSecretKey, withProvider } from "../../src/cli/keys/read-keys.ts";
import { facts, time } from "../../src/cli/output/output.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";
import { findTrueProposal } from "../../src/cli/verbs/proposal.ts";
import { deriveAddress } from "../../src/crypto/address.ts";
import { equalBytes } from "../../src/crypto/bytes.ts";
import { parseCanonical } from "./canonical-json.ts";
import { toSignedMessage } from "./keys.ts";
import { describeRepository } from "./verbs.ts";

const { method } = RepositoryService;

export const rootVerbs: readonly Verb[] = [
  declareVerb({
    line: "tuf init REPOSITORY WALLET-ID",
    meaning:
      "Creates a repository whose root the signers of a wallet sign, with keys in kms for the other roles, and proposes\n" +
      "its first root. The signers must hold their keys: see qsp multisig create --signer.",
    example: 'qsp tuf init plant "$SIGNERS_WALLET"',
    async run({ operands: [repository = "", walletId = ""], output, server }) {
      await server.ask(method.createRepository, { repository, walletId });
      const answer = await server.ask(method.proposeRoot, { repository });
      output.answer(method.proposeRoot.output, answer, () => describeRoot(answer.proposal));
      return exitCodes.done;
    },
  }),
  unaryVerb(method.proposeRoot, {
    line: "tuf rotate REPOSITORY",
    options: {
      role: {
        value: "ROLE",
        meaning: "targets, snapshot or timestamp, which gets a new key; repeatable",
        isMany: true,
      },
      wallet: { value: "WALLET-ID", meaning: "Wallet with the new signers" },
      expires: {
        value: "TIME",
        meaning: "Time of expiry, such as 2030-01-31T12:00:00Z, or a duration such as 365d",
      },
    },
    meaning:
      "Proposes the next root: with new keys, new signers, or only a later expiry. The current keys stay in use until\n" +
      "qsp tuf publish-root.",
    example: "qsp tuf rotate firmware --role timestamp",
    ask: ({ operands: [repository = ""], options }) => {
      const expiresAt = readTime(options, "expires", 1);
      return {
        repository,
        newKeys: [...options.all("role")],
        walletId: options.text("wallet") ?? "",
        ...(expiresAt && { expiresAt }),
      };
    },
    say: ({ proposal }) => describeRoot(proposal),
  }),
  declareVerb({
    line: "tuf sign-root REPOSITORY PROPOSAL-ID",
    options: {
      "key-file": inputFile(
        "The signer's own secret key (ML-DSA-65; PEM, DER or a JWK), which stays on this machine",
      ),
    },
    meaning:
      "Signs a proposed root as one of its signers, and votes for it. Checks that the proposal in the wallet is about exactly\n" +
      "these bytes, and prints what they say. Without --key-file, only prints it.",
    example: 'qsp tuf sign-root firmware "$ROOT_PROPOSAL" --key-file ada.key',
    async run({ operands: [repository = "", proposalId = ""], options, output, server }) {
      const root = await findRoot(server, repository, proposalId);
      const keyFile = options.text("key-file");
      const answer =
        keyFile === undefined
          ? { proposal: root }
          : await server.ask(method.signRoot, await sign(server, root, keyFile));
      const { output: desc } = keyFile === undefined ? method.getRootProposal : method.signRoot;
      output.answer(
        desc,
        create(desc, answer),
        () => `${describeRoot(answer.proposal)}\n\n${describeMetadata(root.metadata)}`,
      );
      return exitCodes.done;
    },
  }),
  unaryVerb(method.publishRoot, {
    line: "tuf publish-root REPOSITORY PROPOSAL-ID",
    meaning: "Executes a proposal that enough signers have signed, and publishes its root.",
    example: 'qsp tuf publish-root firmware "$SIGNED_ROOT"',
    async ask({ operands: [repository = "", proposalId = ""], server }) {
      const proposal = await findRoot(server, repository, proposalId);
      if (proposal.proposalStatus === "PENDING")
        await server.ask(DefiService.method.executeProposal, { proposalId });
      return { repository, proposalId };
    },
    say: ({ repository }) => describeRepository(repository),
  }),
];

/** Builds a signer's request: the signature over the root and, for a current signer, the vote. */
function sign(server: ApiClient, root: RootProposal, keyFile: string) {
  const { repository, proposalId, metadata } = root;
  return withProvider(async (provider) => {
    const secretKey = await readSecretKey(provider, keyFile);
    if (secretKey.algorithm !== "ML-DSA-65")
      throw usageError(`${keyFile} is an ${secretKey.algorithm} key; signers need ML-DSA-65`);
    const signer = deriveAddress(secretKey.publicKey.exportRaw());
    const known = root.signers.find((one) => one.signer === signer);
    if (known === undefined)
      throw usageError(`${keyFile} is the key of ${signer}, which is no signer of this root`);
    const rootSignature = Uint8Array.from(await provider.sign(secretKey, toSignedMessage(metadata)));
    const request = { repository, proposalId, signer, rootSignature };
    if (!known.isCurrent || known.hasVoted || root.proposalStatus !== "PENDING") return request;
    const { data, signingHash } = await findTrueProposal(server, proposalId);
    if (!equalBytes(data, metadata))
      throw distrustError(`the data of proposal ${proposalId} is not the root that the server shows`);
    return { ...request, vote: Uint8Array.from(await provider.sign(secretKey, signingHash)) };
  });
}

async function findRoot(server: ApiClient, repository: string, proposalId: string): Promise<RootProposal> {
  const { proposal } = await server.ask(method.getRootProposal, { repository, proposalId });
  if (proposal === undefined) throw new Error("the answer has no proposal");
  return proposal;
}

function describeRoot(proposal: RootProposal | undefined): string {
  if (proposal === undefined) throw new Error("the answer has no proposal");
  const { proposalId, version, proposalStatus, signers, currentThreshold, newThreshold, expiresAt } =
    proposal;
  const voted = signers.filter(({ hasVoted }) => hasVoted).length;
  const signed = signers.filter(({ isNew, hasSigned }) => isNew && hasSigned).length;
  return facts({
    proposal: proposalId,
    root: String(version),
    status: proposalStatus,
    voted: `${voted} of ${currentThreshold}`,
    signed: `${signed} of ${newThreshold}`,
    expires: time(expiresAt),
  });
}

/** What a signer should read of a root (TUF specification, section 4.3). */
interface RootMetadata {
  readonly version: number;
  readonly expires: string;
  readonly roles: Readonly<
    Record<string, { readonly keyids: readonly string[]; readonly threshold: number }>
  >;
}

/** Formats a root as text, from the bytes to sign. */
function describeMetadata(metadata: Uint8Array): string {
  // What the server sends is only shown. A signature covers the bytes, whatever they are.
  const { version, expires, roles } = parseCanonical(metadata) as unknown as RootMetadata;
  const lines = Object.entries(roles).map(([role, { keyids, threshold }]) => [
    role,
    `${threshold} of ${keyids.join(" ")}`,
  ]);
  return facts({ "root version": String(version), expires, ...Object.fromEntries(lines) });
}
