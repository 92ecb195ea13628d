import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { tellStory } from "./defi-story.ts";
import { createForeignClient } from "./foreign-client.ts";
import { someClients, tellEverywhere } from "./stories.ts";

tellEverywhere("the governance service", someClients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(DefiService, driver, nextUrl));
});
