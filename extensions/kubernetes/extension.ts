/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const kubernetes: Extension = {
  name: "kubernetes",
  title: "Kubernetes",
  summary: "cluster operators: secrets in etcd, encrypted under a server-held key",
  verbs: [
    {
      word: "k8s-kms",
      after: "proposal",
      load: async () => (await import("./verb.ts")).kubernetesVerbs,
    },
  ],
};
