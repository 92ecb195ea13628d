/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const signatureFormats: Extension = {
  name: "signature-formats",
  title: "Signatures in standard formats",
  summary: "engineers who sign files for third-party tools: DSSE, CMS, JWS and COSE",
  changedVerbs: [
    { word: "sign", load: async () => (await import("./verbs.ts")).addFormatsToSign },
    { word: "verify", load: async () => (await import("./verbs.ts")).addFormatsToVerify },
  ],
};
