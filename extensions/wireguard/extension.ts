/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const wireguard: Extension = {
  name: "wireguard",
  title: "WireGuard",
  summary:
    "operators of WireGuard tunnels: pre-shared keys from ML-KEM-1024, agreed on every two minutes and set on both ends",
  verbs: [
    {
      word: "wireguard",
      after: "tunnel",
      groupMeaning: "Agrees on pre-shared keys for WireGuard, beside the tunnel that they protect.",
      load: async () => {
        const { membershipVerbs, statusVerb } = await import("./verbs.ts");
        return [...membershipVerbs, ...(await import("./up-verb.ts")).createUpVerbs(), statusVerb];
      },
    },
  ],
  packages: async () => [(await import("./package.ts")).wireguardPackage],
};
