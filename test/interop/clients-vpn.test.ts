import { pairDrivers, someDrivers, tellEverywhere } from "./stories.ts";
import { tellStory } from "./vpn-story.ts";

const clients = { onSqlite: someDrivers, onPostgres: someDrivers, onTwoServers: pairDrivers };

tellEverywhere("the gateway", clients, tellStory);
