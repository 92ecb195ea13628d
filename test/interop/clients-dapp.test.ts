import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { tellStory } from "./dapp-story.ts";
import { createForeignClient } from "./foreign-client.ts";
import { someClients, tellEverywhere } from "./stories.ts";

tellEverywhere("the contract service", someClients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(DappService, driver, nextUrl));
});
