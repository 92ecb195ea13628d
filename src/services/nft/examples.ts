/** Example requests for the API description. */
import { answered, example, someId } from "../../calls/example.ts";

const tokenId = answered("mint", "tokenId", someId("token"));
const newOwner = "0x1111111111111111111111111111111111111111";

export const examples = [
  example("nft.NftService.Mint", "mint", "Mints a token.", {
    name: "First",
    description: "The first of its kind",
    artworkUri: "ipfs://artwork",
  }),
  example("nft.NftService.Transfer", "transfer", "Transfers the token.", { tokenId, newOwner }),
  example("nft.NftService.Verify", "verify-nft", "Verifies the whole token.", { tokenId }),
  example("nft.NftService.ListTokens", "list-tokens", "Lists the tokens of an owner.", { owner: newOwner }),
  example("nft.NftService.GetToken", "get-token", "Reads the token.", { tokenId }),
  example("nft.NftService.GetHistory", "get-history", "Lists the transfers of the token.", {
    tokenId,
    pageSize: 10,
  }),
  example("nft.NftService.GetHealth", "get-nft-health", "Checks the health of the service."),
];
