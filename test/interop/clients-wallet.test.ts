import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { createForeignClient } from "./foreign-client.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";
import { tellStory } from "./wallet-story.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the wallet service", clients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(WalletService, driver, nextUrl));
});
