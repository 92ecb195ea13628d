/** The health that Status reports. */
import { ConnectError } from "@connectrpc/connect";
import type { CallLimits } from "../../src/cli/connection/api-client.ts";
import { harmless } from "../../src/cli/output/output.ts";
import { findReason } from "../../src/errors.ts";
import { isAboutKey } from "./explain.ts";
import type { KeyService } from "./key-service.ts";

/** The health of the plugin and its key. */
export interface Health {
  /** "ok", or what is wrong. */
  readonly healthz: string;
  /** The version that Encrypt uses; empty if there is none, or if it is not known yet. */
  readonly keyId: string;
}

/** Maximum characters of healthz; the API server repeats it in its own health and log. */
const maxCharacters = 500;

/**
 * Asks the key service for the current version of the key.
 *
 * If the service does not answer, or refuses the token, nothing is known to be wrong with the key: the last known ID lets
 * the API server write on, with the data encryption key that it has. If the service says that the key cannot be used, an
 * empty ID stops its writes after three minutes.
 */
export async function findHealth(keys: KeyService, lastKeyId: string, limits: CallLimits): Promise<Health> {
  try {
    const { keyId } = await keys.findCurrent(limits);
    return { healthz: "ok", keyId };
  } catch (error) {
    // The caller of Status no longer waits, or there is a bug.
    if (!(error instanceof ConnectError) || limits.signal?.aborted === true) throw error;
    const reason = findReason(error);
    if (reason === "INTERNAL") throw error;
    const healthz = harmless(`${error.rawMessage} (${reason})`).replaceAll("\n", " ").slice(0, maxCharacters);
    return { healthz, keyId: isAboutKey(error) ? "" : lastKeyId };
  }
}
