/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const googleKms: Extension = {
  name: "google-kms",
  title: "Google Cloud KMS",
  summary: "developers whose programs use Google's clients: the same programs, with keys on this server",
  packages: async () => [(await import("./package.ts")).googlePackage],
};
