/** `qsp tuf`: the root, which its signers sign with keys that they hold. */
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { RepositoryService, type RootProposal } from "#gen/tuf/repository_service_pb.ts";
import { unaryVerb } from "../../src/cli/call-verbs.ts";
import { inputFile } from "../../src/cli/command-line/options.ts";
import { readTime } from "../../src/cli/command-line/time-options.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { distrustError, exitCodes, findReason, usageError } from "../../src/cli/exit-codes.ts";
import { parsePublicKey, readPublicKey, readSecretKey, withProvider } from "../../src/cli/keys/read-keys.ts";
import { facts, table, time } from "../../src/cli/output/output.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";
import { findTrueProposal } from "../../src/cli/verbs/defi.ts";
import { deriveAddress } from "../../src/crypto/address.ts";
import { equalBytes } from "../../src/crypto/bytes.ts";
import { parseCanonical } from "./canonical-json.ts";
import { toSignedMessage } from "./keys.ts";
import { hashContent, toHex } from "./metadata.ts";
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
      sha256: {
        value: "HEX",
        meaning: "SHA-256 of the root, which the command prints without --key-file; required to sign",
      },
      known: {
        value: "FILE",
        meaning: "Public key that the signer knows, which the list of signers then names; repeatable",
        isMany: true,
        file: "reads",
      },
    },
    meaning:
      "Signs a proposed root as one of its signers, and votes for it. Without --key-file, only prints what the root says, and\n" +
      "whose keys it contains. Checks that the root is the one that the signer has read, and that the proposal in the wallet\n" +
      "is about exactly these bytes.",
    example: 'qsp tuf sign-root firmware "$ROOT_PROPOSAL" --key-file ada.key --sha256 "$ROOT_SHA256"',
    async run({ operands: [repository = "", proposalId = ""], options, output, server }) {
      const keyFile = options.text("key-file");
      const readHash = options.text("sha256");
      if (keyFile !== undefined && readHash === undefined)
        throw usageError(
          "read the root before you sign it: run the command without --key-file, then with the --sha256 that it prints",
        );
      const root = await findRoot(server, repository, proposalId);
      const sha256 = toHex(hashContent(root.metadata));
      // Otherwise the server could show one root and let another be signed.
      if (readHash !== undefined && readHash.toLowerCase() !== sha256)
        throw distrustError(`the root has the SHA-256 ${sha256}; it is not the one that you read`);
      const request = keyFile === undefined ? undefined : await sign(server, root, keyFile);
      const answer = request === undefined ? { proposal: root } : await server.ask(method.signRoot, request);
      const { output: desc } = request === undefined ? method.getRootProposal : method.signRoot;
      const own = new Map(request && [[request.signer, keyFile ?? ""]]);
      const signers = await describeSigners(
        { ...root, signers: answer.proposal?.signers ?? root.signers },
        options.all("known"),
        own,
      );
      output.answer(
        desc,
        create(desc, answer),
        () => `${describeRoot(answer.proposal)}\n\n${describeMetadata(root.metadata)}\n\n${signers}`,
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
        await server.ask(DefiService.method.executeProposal, { proposalId }).catch(ignoreExecuted);
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

/** Another caller may have executed the proposal since: the publication then decides. */
function ignoreExecuted(error: unknown): void {
  if (!(error instanceof ConnectError && findReason(error) === "PROPOSAL_EXECUTED")) throw error;
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

/**
 * Formats the signers of a root as a table: those whose keys are in the bytes to sign, then those who leave.
 *
 * @param known files with public keys, whose names the table shows
 * @param own the key file of the signer, by address
 */
function describeSigners(
  { metadata, signers }: RootProposal,
  known: readonly string[],
  own: ReadonlyMap<string, string>,
): Promise<string> {
  return withProvider(async (provider) => {
    const files = new Map(own);
    for (const file of known) files.set(deriveAddress(readPublicKey(provider, file).exportRaw()), file);
    const {
      keys,
      roles: { root },
    } = parseCanonical(metadata) as unknown as RootMetadata;
    // The server's list is not what is signed: the addresses follow from the keys in the root.
    const proposed = (root?.keyids ?? []).map((tufKeyId): [string, string] => {
      const key = parsePublicKey(
        provider,
        keys[tufKeyId]?.keyval.public ?? "",
        `key ${tufKeyId} of the root`,
      );
      return [deriveAddress(key.exportRaw()), tufKeyId];
    });
    const isProposed = new Set(proposed.map(([address]) => address));
    const leaving = signers
      .filter(({ signer }) => !isProposed.has(signer))
      .map(({ signer, tufKeyId }): [string, string] => [signer, tufKeyId]);
    const rows = [...proposed, ...leaving].map(([address, tufKeyId]) => {
      const state = signers.find(({ signer }) => signer === address);
      const change = isProposed.has(address) ? (state?.isCurrent === true ? "" : "new") : "leaves";
      return [address, tufKeyId, change, state?.hasSigned === true ? "yes" : "", files.get(address) ?? ""];
    });
    return table(["SIGNER", "TUF KEY ID", "CHANGE", "SIGNED", "KEY FILE"], rows);
  });
}

/** What a signer should read of a root (TUF specification, section 4.3). */
interface RootMetadata {
  readonly version: number;
  readonly expires: string;
  readonly keys: Readonly<Record<string, { readonly keyval: { readonly public: string } }>>;
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
  const about = { "root version": String(version), sha256: toHex(hashContent(metadata)), expires };
  return facts({ ...about, ...Object.fromEntries(lines) });
}
