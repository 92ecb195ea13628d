/** `qsp nft`: tokens signed by their creator. */
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { listVerb, unaryVerb } from "../call-verbs.ts";
import { time } from "../output/output.ts";
import type { Verb } from "../verb.ts";

const { method } = NftService;

export const nftVerbs: readonly Verb[] = [
  unaryVerb(method.mint, {
    line: "nft mint NAME",
    options: {
      description: { value: "TEXT", meaning: "Describes the token" },
      artwork: { value: "URI", meaning: "Location of the artwork" },
    },
    meaning: "Mints a token. A key generated for this mint signs its metadata.",
    example: "qsp nft mint 'Night sky' --artwork https://example.test/night.png",
    ask: ({ operands: [name = ""], options }) => ({
      name,
      description: options.text("description") ?? "",
      artworkUri: options.text("artwork") ?? "",
    }),
    say: ({ tokenId: token, owner, metadataHash }) => ({ token, owner, "metadata hash": metadataHash }),
  }),
  listVerb(method.listTokens, {
    line: "nft list",
    options: { owner: { value: "ADDRESS", meaning: "Only tokens with this owner" } },
    meaning: "Lists tokens in minting order.",
    ask: ({ options }) => ({ owner: options.text("owner") ?? "" }),
    items: ({ tokens }) => tokens,
    none: "There are no tokens.",
    columns: { TOKEN: "tokenId", OWNER: "currentOwner", NAME: "name" },
  }),
  unaryVerb(method.getToken, {
    line: "nft show TOKEN-ID",
    meaning: "Describes a token.",
    example: 'qsp nft show "$TOKEN"',
    ask: ({ operands: [tokenId = ""] }) => ({ tokenId }),
    say: ({ tokenId, metadata, currentOwner, creatorAddress, mintedAt, metadataHash }) => ({
      token: tokenId,
      name: metadata?.name,
      description: metadata?.description,
      artwork: metadata?.artworkUri,
      owner: currentOwner,
      creator: creatorAddress,
      minted: time(mintedAt),
      "metadata hash": metadataHash,
    }),
  }),
  unaryVerb(method.transfer, {
    line: "nft transfer TOKEN-ID NEW-OWNER",
    options: { from: { value: "ADDRESS", meaning: "Expected current owner" } },
    meaning: "Transfers a token to another owner.",
    example: 'qsp nft transfer "$TOKEN" 0x00112233445566778899aabbccddeeff00112233',
    ask: ({ operands: [tokenId = "", newOwner = ""], options }) => ({
      ...{ tokenId, newOwner },
      fromOwner: options.text("from") ?? "",
    }),
    say: ({ transfer, currentOwner: owner }, { operands: [token] }) => ({
      token,
      from: transfer?.fromAddress,
      owner,
    }),
  }),
  unaryVerb(method.verify, {
    line: "nft verify TOKEN-ID",
    meaning: "Verifies a token as a whole: its metadata, hash, signature and history.",
    example: 'qsp nft verify "$TOKEN"',
    ask: ({ operands: [tokenId = ""] }) => ({ tokenId }),
    isYes: ({ valid }) => valid,
    say: ({ valid, reason }, { operands: [token] }) =>
      valid ? `${token} is valid.` : `${token} is NOT valid: ${reason}.`,
  }),
];
