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
      load: async () => [
        ...(await import("./join-verb.ts")).joinVerbs,
        ...(await import("./up-verb.ts")).createUpVerbs(),
        ...(await import("./status-verb.ts")).statusVerbs,
      ],
    },
  ],
  packages: async () => [(await import("./package.ts")).wireguardPackage],
};
