import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { createForeignClient } from "./foreign-client.ts";
import { someClients, tellEverywhere } from "./stories.ts";
import { tellStory } from "./wallet-story.ts";

tellEverywhere("the wallet service", someClients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(WalletService, driver, nextUrl));
});
