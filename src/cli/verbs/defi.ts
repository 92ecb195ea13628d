/** `qsp multisig` and `proposal`: multi-signature wallets, and what their signers decide on. */

import { DefiService, type Proposal } from "#gen/defi/defi_service_pb.ts";
import { hashProposal } from "../../client/hash-proposal.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { equalBytes } from "../../crypto/bytes.ts";
import { listVerb, unaryVerb } from "../call-verbs.ts";
import { inputFile } from "../command-line/options.ts";
import { readTime } from "../command-line/time-options.ts";
import { type ApiClient, askPages } from "../connection/api-client.ts";
import { distrustError, usageError } from "../exit-codes.ts";
import { readData } from "../files/read.ts";
import { readPublicKey, readSecretKey, withProvider } from "../keys/read-keys.ts";
import { time } from "../output/output.ts";
import type { Verb, VerbInput } from "../verb.ts";

const { method } = DefiService;
const maxSigners = 100;

export const multisigVerbs: readonly Verb[] = [
  unaryVerb(method.createMultisig, {
    line: "multisig create",
    options: {
      threshold: { value: "NUMBER", meaning: "Number of signers that must sign" },
      signers: {
        value: "NUMBER",
        meaning: `Creates this number of signers, 1 to ${maxSigners}; the server stores their keys`,
      },
      signer: {
        value: "FILE",
        meaning: "Public key of a signer who keeps the secret key (ML-DSA-65; PEM or a JWK); repeatable",
        isMany: true,
        file: "reads",
      },
    },
    meaning:
      "Creates a multi-signature wallet. The server creates the signers' keys, or they create them with qsp keygen.",
    example: "qsp multisig create --signer ada.pub --signer bob.pub --threshold 2",
    ask: readSigners,
    say: ({ walletId: wallet, threshold, signers }) => ({
      wallet,
      threshold: `${threshold} of ${signers.length}`,
      signers: signers.join(" "),
    }),
  }),
  listVerb(method.listWallets, {
    line: "multisig list",
    meaning: "Lists multi-signature wallets in creation order.",
    items: ({ wallets }) => wallets,
    none: "There are no multi-signature wallets.",
    columns: {
      WALLET: "walletId",
      THRESHOLD: ({ threshold, signers }) => `${threshold} of ${signers.length}`,
      SIGNERS: ({ signers }) => signers.join(" "),
    },
  }),
];

async function readSigners({ options }: VerbInput) {
  const files = options.all("signer");
  const signerCount = options.whole("signers", 1, maxSigners);
  const threshold = options.whole("threshold", 1, maxSigners);
  if (threshold === undefined)
    throw usageError(
      "--threshold is missing; use --threshold NUMBER with --signers NUMBER, or with one --signer FILE for each signer",
    );
  if ((files.length === 0) === (signerCount === undefined))
    throw usageError("use either --signers, or one --signer for each signer");
  const signerPublicKeys = await withProvider(async (provider) =>
    files.map((file) => Uint8Array.from(readPublicKey(provider, file).exportRaw())),
  );
  return { threshold, signerPublicKeys, ...(signerCount !== undefined && { signerCount }) };
}

export const proposalVerbs: readonly Verb[] = [
  unaryVerb(method.createProposal, {
    line: "proposal create WALLET-ID DATA",
    operandFiles: { DATA: "data" },
    options: {
      title: { value: "TEXT", meaning: "Names the proposal" },
      expires: {
        value: "TIME",
        meaning: "Time of expiry, such as 2030-01-31T12:00:00Z, or a duration such as 30d; default: never",
      },
    },
    meaning: "Creates a proposal for the signers of a wallet. The data is the text itself, @FILE, or -.",
    example: `qsp proposal create "$MULTISIG" 'pay 10 to bob' --title 'June'`,
    async ask({ operands: [walletId = "", data = ""], options }) {
      const expiresAt = readTime(options, "expires", 1);
      return {
        walletId,
        data: await readData(data),
        title: options.text("title") ?? "",
        ...(expiresAt && { expiresAt }),
      };
    },
    say: ({ proposal }) => describe(proposal),
  }),
  listVerb(method.listProposals, {
    line: "proposal list [WALLET-ID]",
    options: {
      status: {
        value: "STATUS",
        meaning: "Only proposals with this status",
        offers: ["PENDING", "EXECUTED"],
      },
    },
    meaning: "Lists proposals in creation order.",
    example: "qsp proposal list --status PENDING",
    ask: ({ operands: [walletId = ""], options }) => ({
      walletId,
      proposalStatus: options.text("status") ?? "",
    }),
    items: ({ proposals }) => proposals,
    none: "There are no proposals.",
    columns: {
      PROPOSAL: "proposalId",
      STATUS: "proposalStatus",
      SIGNED: ({ signatureCount, threshold }) => `${signatureCount} of ${threshold}`,
      CREATED: "createdAt",
      TITLE: "title",
    },
  }),
  unaryVerb(method.signProposal, {
    line: "proposal sign PROPOSAL-ID",
    options: {
      signer: { value: "ADDRESS", meaning: "Signs as this signer, whose key the server stores" },
      "key-file": inputFile("Signs locally with the signer's own secret key (ML-DSA-65; PEM, DER or a JWK)"),
    },
    meaning:
      "Adds a signer's signature. With --key-file, the command computes the hash itself from the fields of the proposal.",
    example: 'qsp proposal sign "$PROPOSAL" --key-file ada.key',
    ask({ operands: [proposalId = ""], options, server }) {
      const { name, value } = options.one("signer", "key-file");
      return name === "signer" ? { proposalId, signer: value } : signHere(server, proposalId, value);
    },
    say: ({ proposal }) => describe(proposal),
  }),
  unaryVerb(method.executeProposal, {
    line: "proposal execute PROPOSAL-ID",
    meaning: "Executes a proposal that has enough signatures.",
    example: 'qsp proposal execute "$SIGNED_PROPOSAL"',
    ask: ({ operands: [proposalId = ""] }) => ({ proposalId }),
    say: ({ proposal }) => describe(proposal),
  }),
];

function signHere(server: ApiClient, proposalId: string, keyFile: string) {
  return withProvider(async (provider) => {
    const secretKey = await readSecretKey(provider, keyFile);
    if (secretKey.algorithm !== "ML-DSA-65")
      throw usageError(`${keyFile} is an ${secretKey.algorithm} key; signers need ML-DSA-65`);
    const { signingHash } = await findTrueProposal(server, proposalId);
    const signature = Uint8Array.from(await provider.sign(secretKey, signingHash));
    return { proposalId, signer: deriveAddress(secretKey.publicKey.exportRaw()), signature };
  });
}

/**
 * Fetches a proposal, and computes the hash that its signers sign from its fields.
 *
 * @throws CliError if the server's hash is a different one
 */
export async function findTrueProposal(server: ApiClient, proposalId: string): Promise<Proposal> {
  const pages = await askPages((pageToken) => server.ask(method.listProposals, { pageToken }));
  const proposals = pages.flatMap((page) => page.proposals);
  const proposal = proposals.find((candidate) => candidate.proposalId === proposalId);
  if (proposal === undefined)
    throw usageError(`proposal ${proposalId} does not exist; qsp proposal list shows the proposals`);
  if (proposal.damaged) throw distrustError(`proposal ${proposalId} was changed in the server's store`);
  if (!equalBytes(await hashProposal(proposal), proposal.signingHash))
    throw distrustError(`the server's signingHash does not match the fields of proposal ${proposalId}`);
  return proposal;
}

function describe(proposal: Proposal | undefined) {
  return {
    proposal: proposal?.proposalId,
    title: proposal?.title,
    status: proposal?.proposalStatus,
    signed: `${proposal?.signatureCount} of ${proposal?.threshold}`,
    expires: time(proposal?.expiresAt),
    executed: time(proposal?.executedAt),
  };
}
