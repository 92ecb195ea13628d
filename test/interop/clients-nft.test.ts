import { NftService } from "#gen/nft/nft_service_pb.ts";
import { createForeignClient } from "./foreign-client.ts";
import { tellStory } from "./nft-story.ts";
import { someClients, tellEverywhere } from "./stories.ts";

tellEverywhere("the token service", someClients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(NftService, driver, nextUrl));
});
