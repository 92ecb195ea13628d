/** `qsp chain`: calls a server's blockchain. */
import { type Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { listVerb, printStream, unaryVerb } from "../call-verbs.ts";
import { readData } from "../files/read.ts";
import { counted } from "../output/output.ts";
import { declareVerb, type Verb } from "../verb.ts";

const { method } = BlockchainService;
/** Hash digits to show: enough to distinguish blocks at a glance. */
const shortHashDigits = 16;
const maxPreviewCharacters = 40;

const columns = {
  BLOCK: "index",
  TIME: "timestamp",
  HASH: ({ blockHash }: Block) => `${blockHash.slice(0, shortHashDigits)}…`,
  VALIDATOR: "validatorAddress",
  DATA: ({ data }: Block) => preview(data),
} as const;

export const chainVerbs: readonly Verb[] = [
  unaryVerb(method.registerNode, {
    line: "chain validator [NAME]",
    meaning: "Creates a validator. The server stores its key.",
    example: "qsp chain validator north",
    ask: ({ operands: [name = ""] }) => ({ name }),
    say: ({ validatorAddress: validator }, { operands: [name] }) => ({ validator, name }),
  }),
  listVerb(method.listValidators, {
    line: "chain validators",
    meaning: "Lists the validators; --json also shows their public keys.",
    items: ({ validators }) => validators,
    none: "There are no validators.",
    columns: {
      VALIDATOR: "validatorAddress",
      STATUS: "registrationStatus",
      REGISTERED: "registeredAt",
      NAME: "name",
    },
  }),
  unaryVerb(method.addBlock, {
    line: "chain add DATA",
    operandFiles: { DATA: "data" },
    options: {
      validator: { value: "ADDRESS", meaning: "Signs with this validator; default: the first validator" },
    },
    meaning: "Appends a block. The data is the text itself, @FILE, or - for standard input.",
    example: "qsp chain add 'invoice 17 is paid'",
    ask: async ({ operands: [data = ""], options }) => ({
      data: await readData(data),
      validatorAddress: options.text("validator") ?? "",
    }),
    say: ({ block }) => ({
      block: String(block?.index),
      hash: block?.blockHash,
      validator: block?.validatorAddress,
    }),
  }),
  listVerb(method.getChain, {
    line: "chain list",
    meaning: "Lists the blocks, starting with genesis.",
    items: ({ blocks }) => blocks,
    columns,
  }),
  unaryVerb(method.verifyChain, {
    line: "chain check",
    meaning:
      "Has the server verify every hash, link and signature of its chain. (Operators can verify the store itself with\n" +
      "qsp chain verify.)",
    isYes: ({ valid }) => valid,
    say: ({ valid, blocksChecked, firstInvalidIndex, reason }) =>
      valid
        ? `The chain is valid: ${counted(blocksChecked, "block")}.`
        : `The chain is broken at block ${firstInvalidIndex}: ${reason}.`,
  }),
  declareVerb({
    line: "chain watch",
    options: {
      from: { value: "INDEX", meaning: "Begins with this block; default: genesis" },
      count: { value: "NUMBER", meaning: "Ends after this number of blocks; default: when interrupted" },
    },
    meaning: "Shows blocks as the chain grows.",
    example: "qsp chain watch --from 0 --count 1",
    async run(input) {
      const fromIndex = input.options.whole("from", 0, Number.MAX_SAFE_INTEGER) ?? 0;
      const count = input.options.whole("count", 1, Number.MAX_SAFE_INTEGER);
      return printStream(method.watchBlocks, input, { fromIndex }, columns, ({ block }) => block, count);
    },
  }),
];

/** Shows the beginning of textual data, or the size of other data. */
function preview(data: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data);
    return text.length > maxPreviewCharacters ? `${text.slice(0, maxPreviewCharacters)}…` : text;
  } catch {
    return `${data.length} bytes`;
  }
}
