/** The health that Status reports. */
import { ConnectError } from "@connectrpc/connect";
import type { CallLimits } from "../../src/cli/connection/api-client.ts";
import { harmless } from "../../src/cli/output/output.ts";
import { findReason } from "../../src/errors.ts";
import { isAboutKey } from "./explain.ts";
import type { KeyService } from "./key-service.ts";

/** Health of the plugin and its key. */
export interface Health {
  /** "ok", or the problem. */
  readonly healthz: string;
  /** The version that Encrypt uses; empty if none exists or it is still unknown. */
  readonly keyId: string;
}

/** Maximum characters of healthz, which the API server repeats in its own health and log. */
const maxCharacters = 500;

/**
 * Asks the key service for the key's current version.
 *
 * If the service does not answer or refuses the token, the key is presumed usable: the last known ID lets the
 * API server keep writing with its current data encryption key. If the service says that the key cannot be
 * used, an empty ID stops the API server's writes after three minutes.
 */
export async function findHealth(keys: KeyService, lastKeyId: string, limits: CallLimits): Promise<Health> {
  try {
    const { keyId } = await keys.findCurrent(limits);
    return { healthz: "ok", keyId };
  } catch (error) {
    // The Status call was cancelled, or this is a bug.
    if (!(error instanceof ConnectError) || limits.signal?.aborted === true) throw error;
    const reason = findReason(error);
    if (reason === "INTERNAL") throw error;
    const healthz = harmless(`${error.rawMessage} (${reason})`).replaceAll("\n", " ").slice(0, maxCharacters);
    return { healthz, keyId: isAboutKey(error) ? "" : lastKeyId };
  }
}
