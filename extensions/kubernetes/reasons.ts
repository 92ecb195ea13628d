/** Reasons that only the plugin gives. It passes on those of the key service too. */
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

/** All of them. README.md has the cause and the remedy of each. */
export const declaredReasons: readonly NamedReason[] = [ciphertextInvalid, keyServiceUnavailable];
