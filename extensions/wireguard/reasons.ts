/** Reasons specific to these calls. README.md lists each one's cause and remedy. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const reasons = {
  tunnelKeyServerHeld: { name: "TUNNEL_KEY_SERVER_HELD", code: Code.FailedPrecondition },
  keyInvalid: { name: "WIREGUARD_KEY_INVALID", code: Code.InvalidArgument },
  keyTaken: { name: "WIREGUARD_KEY_TAKEN", code: Code.AlreadyExists },
  keyMissing: { name: "WIREGUARD_KEY_MISSING", code: Code.FailedPrecondition },
  epochUsed: { name: "EPOCH_USED", code: Code.FailedPrecondition },
  epochInFuture: { name: "EPOCH_IN_FUTURE", code: Code.FailedPrecondition },
  agreementTooSoon: { name: "AGREEMENT_TOO_SOON", code: Code.ResourceExhausted },
  agreementNotFound: { name: "AGREEMENT_NOT_FOUND", code: Code.NotFound },
  confirmationInvalid: { name: "CONFIRMATION_INVALID", code: Code.PermissionDenied },
  gatewayDisconnected: { name: "GATEWAY_DISCONNECTED", code: Code.Unavailable },
  gatewaySilent: { name: "GATEWAY_SILENT", code: Code.Unavailable },
  gatewayReplaced: { name: "GATEWAY_REPLACED", code: Code.Aborted },
  keyNotSet: { name: "KEY_NOT_SET", code: Code.FailedPrecondition },
} as const satisfies Record<string, NamedReason>;

export const declaredReasons: readonly NamedReason[] = Object.values(reasons);
