import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { tellStory } from "./defi-story.ts";
import { createForeignClient } from "./foreign-client.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the governance service", clients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(DefiService, driver, nextUrl));
});
