/** `qsp nft`: tokens that their creator signed. */
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { exitCodes } from "./exit-codes.ts";
import { facts, time } from "./output.ts";
import { printList } from "./print-list.ts";
import type { Verb } from "./verb.ts";

const { method } = NftService;

export const nftVerbs: readonly Verb[] = [
  {
    name: "nft mint",
    operands: ["NAME"],
    options: {
      description: { value: "TEXT", meaning: "Describes the token" },
      artwork: { value: "URI", meaning: "Location of the artwork" },
    },
    meaning: "Mints a token. A key generated for this mint signs its metadata.",
    example: "qsp nft mint 'Night sky' --artwork https://example.test/night.png",
    async run({ operands: [name = ""], options, output, server }) {
      const answer = await server.ask(method.mint, {
        name,
        description: options.text("description") ?? "",
        artworkUri: options.text("artwork") ?? "",
      });
      output.answer(method.mint.output, answer, () =>
        facts({ token: answer.tokenId, owner: answer.owner, "metadata hash": answer.metadataHash }),
      );
      return exitCodes.done;
    },
  },
  {
    name: "nft list",
    operands: [],
    options: { owner: { value: "ADDRESS", meaning: "Only tokens of this owner" } },
    meaning: "Lists tokens in the order of their minting.",
    example: "qsp nft list",
    async run({ options, output, server }) {
      const owner = options.text("owner") ?? "";
      return printList(output, method.listTokens.output, {
        ask: (pageToken) => server.ask(method.listTokens, { owner, pageToken }),
        itemsOf: ({ tokens }) => tokens,
        none: "There are no tokens.",
        headers: ["TOKEN", "OWNER", "NAME"],
        toCells: (token) => [token.tokenId, token.currentOwner, token.name],
      });
    },
  },
  {
    name: "nft show",
    operands: ["TOKEN-ID"],
    options: {},
    meaning: "Describes a token.",
    example: 'qsp nft show "$TOKEN"',
    async run({ operands: [tokenId = ""], output, server }) {
      const answer = await server.ask(method.getToken, { tokenId });
      output.answer(method.getToken.output, answer, () =>
        facts({
          token: answer.tokenId,
          name: answer.metadata?.name,
          description: answer.metadata?.description,
          artwork: answer.metadata?.artworkUri,
          owner: answer.currentOwner,
          creator: answer.creatorAddress,
          minted: time(answer.mintedAt),
          "metadata hash": answer.metadataHash,
        }),
      );
      return exitCodes.done;
    },
  },
  {
    name: "nft transfer",
    operands: ["TOKEN-ID", "NEW-OWNER"],
    options: { from: { value: "ADDRESS", meaning: "Expected current owner" } },
    meaning: "Transfers a token to another owner.",
    example: 'qsp nft transfer "$TOKEN" 0x00112233445566778899aabbccddeeff00112233',
    async run({ operands: [tokenId = "", newOwner = ""], options, output, server }) {
      const answer = await server.ask(method.transfer, {
        tokenId,
        newOwner,
        fromOwner: options.text("from") ?? "",
      });
      output.answer(method.transfer.output, answer, () =>
        facts({ token: tokenId, from: answer.transfer?.fromAddress, owner: answer.currentOwner }),
      );
      return exitCodes.done;
    },
  },
  {
    name: "nft verify",
    operands: ["TOKEN-ID"],
    options: {},
    meaning: "Verifies a token as a whole: its metadata, its hash, its signature and its history.",
    example: 'qsp nft verify "$TOKEN"',
    async run({ operands: [tokenId = ""], output, server }) {
      const answer = await server.ask(method.verify, { tokenId });
      output.answer(method.verify.output, answer, () =>
        answer.valid ? `${tokenId} is valid.` : `${tokenId} is NOT valid: ${answer.reason}.`,
      );
      return answer.valid ? exitCodes.done : exitCodes.no;
    },
  },
];
