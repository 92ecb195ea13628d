/** `qsp k8s-kms`: Kubernetes' KMS v2 plugin. */
import type { Verb } from "../../src/cli/verb.ts";
import { pluginOptions } from "./plugin-options.ts";

export const kubernetesVerbs: readonly Verb[] = [
  {
    name: "k8s-kms",
    operands: [],
    options: pluginOptions,
    meaning:
      "Runs the Kubernetes KMS v2 plugin on a Unix socket: encrypts an API server's keys with a server-held key.\n" +
      "Reads the token again for each call. A call to the server may take 10 seconds, or --timeout. Logs JSON lines to\n" +
      "standard error. The first signal lets running calls finish; the second ends the plugin immediately.",
    example:
      "qsp k8s-kms --socket /run/qsp/kms.sock --key name/etcd --username k8s --password-file /etc/qsp/k8s.password",
    isService: true,
    run: async (input) => (await import("./plugin.ts")).runPlugin(input),
  },
];
