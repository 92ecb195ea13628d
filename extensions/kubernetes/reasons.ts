/** Reasons specific to the plugin. It also passes on the key service's reasons. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const ciphertextInvalid: NamedReason = {
  name: "CIPHERTEXT_INVALID",
  code: Code.InvalidArgument,
};

export const keyServiceUnavailable: NamedReason = {
  name: "KEY_SERVICE_UNAVAILABLE",
  code: Code.Unavailable,
  isServerFault: true,
};

/** All of them. README.md lists each one's cause and remedy. */
export const declaredReasons: readonly NamedReason[] = [ciphertextInvalid, keyServiceUnavailable];
