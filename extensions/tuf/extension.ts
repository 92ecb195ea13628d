/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const tuf: Extension = {
  name: "tuf",
  title: "Firmware with TUF",
  summary:
    "teams that update devices: repositories of The Update Framework, signed with ML-DSA, which python-tuf reads",
  verbs: [
    {
      word: "tuf",
      after: "device",
      groupMeaning:
        "Publishes firmware in repositories of The Update Framework, whose root its signers sign.",
      load: async () => [
        ...(await import("./verbs.ts")).repositoryVerbs,
        ...(await import("./root-verbs.ts")).rootVerbs,
      ],
    },
  ],
  packages: async () => [(await import("./package.ts")).tufPackage],
  settings: async () => (await import("./settings.ts")).settings,
};
