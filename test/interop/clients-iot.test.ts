import { tellStory } from "./iot-story.ts";
import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the device service", clients, tellStory);
