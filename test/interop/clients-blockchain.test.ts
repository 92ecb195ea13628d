import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { tellStory } from "./blockchain-story.ts";
import { tellOfGenesis } from "./blockchain-story-genesis.ts";
import { createForeignClient } from "./foreign-client.ts";
import { someClients, tellEverywhere } from "./stories.ts";

// The service tells a validator's key but once, and the blocks of earlier stories are verified too.
const validators = new Map<string, string>();

tellEverywhere("the chain without a validator", someClients, ({ driver, nextUrl }) => {
  tellOfGenesis(createForeignClient(BlockchainService, driver, nextUrl));
});

tellEverywhere("the chain", someClients, ({ driver, nextUrl }) => {
  const chain = createForeignClient(BlockchainService, driver, nextUrl);
  tellStory({ chain, driver, nextUrl, validators });
});
