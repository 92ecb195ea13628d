import { tellStory } from "./iot-story.ts";
import { someClients, tellEverywhere } from "./stories.ts";

tellEverywhere("the device service", someClients, tellStory);
