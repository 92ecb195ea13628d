/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const oauth: Extension = {
  name: "oauth",
  title: "OAuth 2",
  summary: "operators and developers: access tokens for programs, scopes, and verification by other servers",
  packages: async () => [(await import("./package.ts")).oauthPackage],
};
