/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const kubernetes: Extension = {
  name: "kubernetes",
  title: "Kubernetes",
  summary: "operators of clusters: secrets in etcd, encrypted under a key of the key service",
  verbs: [
    {
      word: "k8s-kms",
      after: "proposal",
      load: async () => (await import("./verb.ts")).kubernetesVerbs,
    },
  ],
};
