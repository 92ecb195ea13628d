/** `qsp proposal`: proposals that the signers of a wallet decide on. */
import { hash } from "node:crypto";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import canonicalize from "canonicalize";
import { DefiService, type Proposal } from "#gen/defi/defi_service_pb.ts";
import { deriveAddress } from "../crypto/address.ts";
import { equalBytes } from "../crypto/bytes.ts";
import { type ApiClient, askPages } from "./client.ts";
import { distrustError, exitCodes, usageError } from "./exit-codes.ts";
import { readData } from "./files.ts";
import { facts, time } from "./output.ts";
import { readSecretKey, withProvider } from "./pem-keys.ts";
import { printList } from "./print-list.ts";
import { readTime } from "./time-options.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = DefiService;

export const proposalVerbs: readonly Verb[] = [
  {
    name: "proposal create",
    operands: ["WALLET-ID", "DATA"],
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
    run: create,
  },
  {
    name: "proposal list",
    operands: ["[WALLET-ID]"],
    options: {
      status: { value: "STATUS", meaning: "Only proposals of this status", offers: ["PENDING", "EXECUTED"] },
    },
    meaning: "Lists proposals in the order of their creation.",
    example: "qsp proposal list --status PENDING",
    async run({ operands: [walletId = ""], options, output, server }) {
      const proposalStatus = options.text("status") ?? "";
      return printList(output, method.listProposals.output, {
        ask: (pageToken) => server.ask(method.listProposals, { walletId, proposalStatus, pageToken }),
        itemsOf: ({ proposals }) => proposals,
        none: "There are no proposals.",
        headers: ["PROPOSAL", "STATUS", "SIGNED", "CREATED", "TITLE"],
        toCells: (proposal) => [
          proposal.proposalId,
          proposal.proposalStatus,
          `${proposal.signatureCount} of ${proposal.threshold}`,
          time(proposal.createdAt),
          proposal.title,
        ],
      });
    },
  },
  {
    name: "proposal sign",
    operands: ["PROPOSAL-ID"],
    options: {
      signer: { value: "ADDRESS", meaning: "Signs as this signer, whose key the server stores" },
      "key-file": {
        value: "FILE",
        meaning: "Signs locally with the signer's own secret key (ML-DSA-65; PEM, DER or a JWK)",
        file: "reads",
      },
    },
    meaning:
      "Adds a signer's signature. With --key-file, the command computes the hash itself from the fields of the proposal.",
    example: 'qsp proposal sign "$PROPOSAL" --key-file ada.key',
    run: sign,
  },
  {
    name: "proposal execute",
    operands: ["PROPOSAL-ID"],
    options: {},
    meaning: "Executes a proposal that has enough signatures.",
    example: 'qsp proposal execute "$SIGNED_PROPOSAL"',
    async run({ operands: [proposalId = ""], output, server }) {
      const answer = await server.ask(method.executeProposal, { proposalId });
      output.answer(method.executeProposal.output, answer, () => describe(answer.proposal));
      return exitCodes.done;
    },
  },
];

async function create({
  operands: [walletId = "", data = ""],
  options,
  output,
  server,
}: VerbInput): Promise<number> {
  const expiresAt = readTime(options, "expires", 1);
  const answer = await server.ask(method.createProposal, {
    walletId,
    data: await readData(data),
    title: options.text("title") ?? "",
    ...(expiresAt && { expiresAt }),
  });
  output.answer(method.createProposal.output, answer, () => describe(answer.proposal));
  return exitCodes.done;
}

async function sign({ operands: [proposalId = ""], options, output, server }: VerbInput): Promise<number> {
  const signer = options.text("signer");
  const keyFile = options.text("key-file");
  if ((signer === undefined) === (keyFile === undefined))
    throw usageError("use exactly one of --signer and --key-file");
  const answer = await server.ask(
    method.signProposal,
    keyFile === undefined
      ? { proposalId, signer: signer ?? "" }
      : await signHere(server, proposalId, keyFile),
  );
  output.answer(method.signProposal.output, answer, () => describe(answer.proposal));
  return exitCodes.done;
}

function signHere(server: ApiClient, proposalId: string, keyFile: string) {
  return withProvider(async (provider) => {
    const secretKey = await readSecretKey(provider, keyFile);
    if (secretKey.algorithm !== "ML-DSA-65")
      throw usageError(`${keyFile} is an ${secretKey.algorithm} key; signers need ML-DSA-65`);
    const { proposals } = await askPages(
      (pageToken) => server.ask(method.listProposals, { pageToken }),
      ({ proposals }) => proposals,
    );
    const proposal = proposals.find((candidate) => candidate.proposalId === proposalId);
    if (proposal === undefined)
      throw usageError(`proposal ${proposalId} does not exist; qsp proposal list shows the proposals`);
    if (proposal.damaged) throw distrustError(`proposal ${proposalId} was changed in the server's store`);
    const signingHash = hashProposal(proposal);
    if (!equalBytes(signingHash, proposal.signingHash))
      throw distrustError(`the server's signingHash does not match the fields of proposal ${proposalId}`);
    const signature = Uint8Array.from(await provider.sign(secretKey, signingHash));
    return { proposalId, signer: deriveAddress(secretKey.publicKey.exportRaw()), signature };
  });
}

/** Hashes the bytes that signers sign; see DefiService in the proto. */
function hashProposal({
  proposalId,
  walletId,
  data,
  title,
  threshold,
  createdAt,
  expiresAt,
}: Proposal): Uint8Array {
  const canonical = canonicalize({
    createdAt: instant(createdAt),
    data: Buffer.from(data).toString("base64"),
    expiresAt: instant(expiresAt),
    proposalId,
    purpose: "defi proposal",
    threshold,
    title,
    walletId,
  });
  return hash("sha256", canonical ?? "", "buffer");
}

function instant(timestamp: Timestamp | undefined): string {
  return timestamp === undefined ? "" : timestampDate(timestamp).toISOString();
}

function describe(proposal: Proposal | undefined): string {
  return facts({
    proposal: proposal?.proposalId,
    title: proposal?.title,
    status: proposal?.proposalStatus,
    signed: `${proposal?.signatureCount} of ${proposal?.threshold}`,
    expires: time(proposal?.expiresAt),
    executed: time(proposal?.executedAt),
  });
}
