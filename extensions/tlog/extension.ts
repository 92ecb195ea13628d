/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const tlog: Extension = {
  name: "tlog",
  title: "Verifiable logs",
  summary: "operators and readers of the audit log: checkpoints, proofs, witnesses and third-party tools",
  verbs: [
    {
      word: "log",
      after: "chain",
      groupMeaning:
        "Fetches checkpoints and proofs from the verifiable logs, and verifies them without the server.",
      load: async () => [
        ...(await import("./fetch-verbs.ts")).fetchVerbs,
        ...(await import("./verify-verb.ts")).verifyVerbs,
        ...(await import("./leaf-verb.ts")).leafVerbs,
      ],
    },
  ],
  packages: async () => [(await import("./package.ts")).tlogPackage],
  settings: async () => (await import("./settings.ts")).settings,
};
