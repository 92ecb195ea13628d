import { someClients, tellEverywhere } from "./stories.ts";
import { tellStory } from "./vpn-story.ts";

tellEverywhere("the gateway", someClients, tellStory);
