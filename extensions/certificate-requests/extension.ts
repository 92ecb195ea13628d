/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const certificateRequests: Extension = {
  name: "certificate-requests",
  title: "Certificates",
  summary:
    "teams whose verifiers expect X.509: certificate requests for stored keys, and certificates for them",
  changedVerbs: [{ word: "kms", load: async () => (await import("./kms-csr-verb.ts")).addCsrVerb }],
  changedStoreVerbs: [{ word: "ca", load: async () => (await import("./verbs.ts")).addRequests }],
};
