/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const sigstore: Extension = {
  name: "sigstore",
  title: "sigstore KMS plugin",
  summary: "engineers who sign with sigstore tools and server-held keys",
  verbs: [
    {
      word: "sigstore-kms",
      after: "verify",
      load: async () => (await import("./verb.ts")).sigstoreVerbs,
    },
  ],
};
