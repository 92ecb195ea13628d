import { NftService } from "#gen/nft/nft_service_pb.ts";
import { createForeignClient } from "./foreign-client.ts";
import { tellStory } from "./nft-story.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the token service", clients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(NftService, driver, nextUrl));
});
