/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const sigstore: Extension = {
  name: "sigstore",
  title: "sigstore's KMS plugin",
  summary: "engineers who give programs of sigstore a key of the server",
  verbs: [
    {
      word: "sigstore-kms",
      after: "verify",
      load: async () => (await import("./verb.ts")).sigstoreVerbs,
    },
  ],
};
