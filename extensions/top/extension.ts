/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const top: Extension = {
  name: "top",
  title: "Live view of a server",
  summary: "operators at a terminal: calls, durations, queues and failures as they happen",
  verbs: [{ word: "top", after: "health", load: async () => (await import("./verb.ts")).topVerbs }],
};
