import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { tellStory } from "./blockchain-story.ts";
import { tellOfGenesis } from "./blockchain-story-genesis.ts";
import { createForeignClient } from "./foreign-client.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };
// Nothing of it differs from client to client that the story of the chain does not show.
const fewClients = { onSqlite: someDrivers, onPostgres: pairDrivers, onTwoServers: pairDrivers };
// The service tells a validator's key but once, and the blocks of earlier stories are verified too.
const validators = new Map<string, string>();

tellEverywhere("the chain that nobody has a validator for", fewClients, ({ driver, nextUrl }) => {
  tellOfGenesis(createForeignClient(BlockchainService, driver, nextUrl));
});

tellEverywhere("the chain", clients, ({ driver, nextUrl }) => {
  const chain = createForeignClient(BlockchainService, driver, nextUrl);
  tellStory({ chain, driver, nextUrl, validators });
});
