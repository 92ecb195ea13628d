import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { tellStory } from "./dapp-story.ts";
import { createForeignClient } from "./foreign-client.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the contract service", clients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(DappService, driver, nextUrl));
});
