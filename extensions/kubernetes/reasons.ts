/** Reasons that only the plugin gives. It passes on those of the key service too. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const ciphertextInvalid: NamedReason = {
  name: "CIPHERTEXT_INVALID",
  code: Code.InvalidArgument,
  cause:
    "`qsp k8s-kms` did not make this ciphertext with this `key_id` and these annotations, or one of them was changed.",
  remedy: "Restore the object in etcd from a backup. Check that the plugin uses the key that encrypted it.",
};

export const keyServiceUnavailable: NamedReason = {
  name: "KEY_SERVICE_UNAVAILABLE",
  code: Code.Unavailable,
  isServerFault: true,
  cause:
    "`qsp k8s-kms` cannot reach the key service, cannot read its credentials, or got an unusable answer.",
  remedy:
    "Operator: check `--url`, the certificate, and the health of the key service. The plugin connects again itself.",
};

/** As docs/errors.md shows them. */
export const kubernetesReasons = {
  heading: "The plugin for Kubernetes",
  reasons: [ciphertextInvalid, keyServiceUnavailable],
};
