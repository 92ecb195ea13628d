import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { drivers } from "./drivers.ts";
import { createForeignClient } from "./foreign-client.ts";
import { tellStory } from "./kms-story.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";

const clients = { onSqlite: drivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the key service", clients, ({ driver, nextUrl }) => {
  tellStory(createForeignClient(KmsService, driver, nextUrl), driver.sendsStreams);
});
