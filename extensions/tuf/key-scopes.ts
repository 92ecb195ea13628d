/** Scopes of the key service that calls of repositories need. */
import type { HandlerContext } from "@connectrpc/connect";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { requireScopeOf } from "../../src/calls/require-scope.ts";

/**
 * Requires the scopes of the calls that a request stands for. From then on, Publish signs with the keys, so that
 * a token which publishes needs no scope of the key service.
 *
 * @param handles the keys that the request names for roles; empty for a role without one
 * @param createsKeys whether it creates keys
 * @throws SCOPE_MISSING
 */
export function requireKeyScopes(
  context: HandlerContext,
  handles: readonly string[],
  createsKeys = handles.includes(""),
): void {
  if (handles.some((handle) => handle !== "")) requireScopeOf(context, KmsService.method.sign);
  if (createsKeys) requireScopeOf(context, KmsService.method.createKey);
}
