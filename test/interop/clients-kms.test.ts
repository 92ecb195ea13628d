import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { createForeignClient } from "./foreign-client.ts";
import { tellStory } from "./kms-story.ts";
import { someClients, tellEverywhere } from "./stories.ts";

tellEverywhere("the key service", someClients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(KmsService, driver, nextUrl), driver.sendsStreams);
});
