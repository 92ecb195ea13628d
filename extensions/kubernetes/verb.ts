/** `qsp k8s-kms`: the KMS v2 plugin of Kubernetes. */
import type { Verb } from "../../src/cli/verb.ts";
import { pluginOptions } from "./plugin-options.ts";

export const kubernetesVerbs: readonly Verb[] = [
  {
    name: "k8s-kms",
    operands: [],
    options: pluginOptions,
    meaning:
      "Runs the KMS v2 plugin of Kubernetes on a Unix socket: encrypts the keys of an API server with a key of the server.\n" +
      "Reads a token anew for each call. A call to the server may take 10 seconds, or --timeout. Logs JSON lines on\n" +
      "standard error. The first signal lets running calls finish. The second ends the plugin immediately.",
    example:
      "qsp k8s-kms --socket /run/qsp/kms.sock --key name/etcd --username k8s --password-file /etc/qsp/k8s.password",
    isService: true,
    run: async (input) => (await import("./plugin.ts")).runPlugin(input),
  },
];
