/** `qsp chain`: the chain of blocks of a server. */
import { type Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { askPages, oneOf } from "./client.ts";
import { exitCodes } from "./exit-codes.ts";
import { readData } from "./files.ts";
import { counted, facts, table, time } from "./output.ts";
import { printList } from "./print-list.ts";
import type { Verb } from "./verb.ts";

const { method } = BlockchainService;
/** Enough digits of a hash to tell blocks apart at a glance. */
const shortHashDigits = 16;
const maxPreviewCharacters = 40;

export const chainVerbs: readonly Verb[] = [
  {
    name: "chain validator",
    operands: ["[NAME]"],
    options: {},
    meaning: "Creates a validator. The server stores its key.",
    example: "qsp chain validator north",
    async run({ operands: [name = ""], output, server }) {
      const answer = await server.ask(method.registerNode, { name });
      output.answer(method.registerNode.output, answer, () =>
        facts({ validator: answer.validatorAddress, name }),
      );
      return exitCodes.done;
    },
  },
  {
    name: "chain validators",
    operands: [],
    options: {},
    meaning: "Lists the validators; --json also shows their public keys.",
    example: "qsp chain validators",
    async run({ output, server }) {
      return printList(output, method.listValidators.output, {
        ask: (pageToken) => server.ask(method.listValidators, { pageToken }),
        itemsOf: ({ validators }) => validators,
        none: "There are no validators.",
        headers: ["VALIDATOR", "STATUS", "REGISTERED", "NAME"],
        toCells: (validator) => [
          validator.validatorAddress,
          validator.registrationStatus,
          time(validator.registeredAt),
          validator.name,
        ],
      });
    },
  },
  {
    name: "chain add",
    operands: ["DATA"],
    operandFiles: { DATA: "data" },
    options: {
      validator: { value: "ADDRESS", meaning: "Signs with this validator; default: the first one" },
    },
    meaning: "Appends a block. The data is the text itself, @FILE, or - for standard input.",
    example: "qsp chain add 'invoice 17 is paid'",
    async run({ operands: [data = ""], options, output, server }) {
      const validatorAddress = options.text("validator") ?? "";
      const answer = await server.ask(method.addBlock, { data: await readData(data), validatorAddress });
      output.answer(method.addBlock.output, answer, () =>
        facts({
          block: String(answer.block?.index),
          hash: answer.block?.blockHash,
          validator: answer.block?.validatorAddress,
        }),
      );
      return exitCodes.done;
    },
  },
  {
    name: "chain list",
    operands: [],
    options: {},
    meaning: "Lists the blocks, starting with genesis.",
    example: "qsp chain list",
    async run({ output, server }) {
      const answer = await askPages(
        (pageToken) => server.ask(method.getChain, { pageToken }),
        ({ blocks }) => blocks,
      );
      output.answer(method.getChain.output, answer, () =>
        table(["BLOCK", "TIME", "HASH", "VALIDATOR", "DATA"], answer.blocks.map(toCells)),
      );
      return exitCodes.done;
    },
  },
  {
    name: "chain check",
    operands: [],
    options: {},
    meaning:
      "Has the server verify every hash, link and signature of its chain. (qsp chain verify is the operator's: it reads\n" +
      "the store itself.)",
    example: "qsp chain check",
    async run({ output, server }) {
      const answer = await server.ask(method.verifyChain, {});
      const { valid, blocksChecked, firstInvalidIndex, reason } = answer;
      output.answer(method.verifyChain.output, answer, () =>
        valid
          ? `The chain is valid: ${counted(blocksChecked, "block")}.`
          : `The chain is broken at block ${firstInvalidIndex}: ${reason}.`,
      );
      return valid ? exitCodes.done : exitCodes.no;
    },
  },
  {
    name: "chain watch",
    operands: [],
    options: {
      from: { value: "INDEX", meaning: "Begins with this block; default: genesis" },
      count: { value: "NUMBER", meaning: "Ends after this number of blocks; default: when interrupted" },
    },
    meaning: "Shows blocks as the chain grows.",
    example: "qsp chain watch --from 0 --count 1",
    async run({ options, output, server }) {
      const fromIndex = options.whole("from", 0, Number.MAX_SAFE_INTEGER) ?? 0;
      let left = options.whole("count", 1, Number.MAX_SAFE_INTEGER) ?? Number.POSITIVE_INFINITY;
      for await (const answer of server.stream(method.watchBlocks, oneOf({ fromIndex }))) {
        const { block } = answer;
        if (block === undefined) continue;
        output.answer(method.watchBlocks.output, answer, () => toCells(block).join("  "));
        left -= 1;
        if (left <= 0) break;
      }
      return exitCodes.done;
    },
  },
];

function toCells({ index, timestamp, blockHash, validatorAddress, data }: Block): string[] {
  return [
    String(index),
    time(timestamp),
    `${blockHash.slice(0, shortHashDigits)}…`,
    validatorAddress,
    preview(data),
  ];
}

/** The beginning of data that is text; otherwise its size. */
function preview(data: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data);
    return text.length > maxPreviewCharacters ? `${text.slice(0, maxPreviewCharacters)}…` : text;
  } catch {
    return `${data.length} bytes`;
  }
}
