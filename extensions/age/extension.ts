/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const age: Extension = {
  name: "age",
  title: "age files",
  summary: "anyone who encrypts files with age, rage or SOPS to server-held keys, or with qsp itself",
  verbs: [
    { word: "encrypt", after: "verify", load: async () => (await import("./encrypt-verb.ts")).encryptVerbs },
    { word: "decrypt", after: "encrypt", load: async () => (await import("./decrypt-verb.ts")).decryptVerbs },
    {
      word: "age-plugin",
      after: "decrypt",
      load: async () => (await import("./plugin-verb.ts")).pluginVerbs,
    },
  ],
  changedVerbs: [{ word: "kms", load: async () => (await import("./kms-verbs.ts")).addAgeVerbs }],
};
