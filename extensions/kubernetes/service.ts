/** v2.KeyManagementService: the calls of the Kubernetes API server. */
import { ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { KeyManagementService } from "#gen/kubernetes/kms_pb.ts";
import type { CallLimits } from "../../src/cli/connection/api-client.ts";
import { harmless } from "../../src/cli/output/output.ts";
import { kemAlgorithms } from "../../src/crypto/algorithms.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { findReason, refuseField } from "../../src/errors.ts";
import { checkPlaintext, kemAnnotation, openEnvelope, readEnvelope, sealEnvelope } from "./envelope.ts";
import { isAboutKey } from "./explain.ts";
import type { KeyService } from "./key-service.ts";

export interface ServiceDeps {
  readonly keys: KeyService;
  /** Timeout of a key service call in milliseconds. */
  readonly maxServerMs: number;
  /** Called with the health that Status reports. */
  readonly onHealth: (health: Health) => void;
}

/** Creates the handlers. */
export function createService(deps: ServiceDeps): ServiceImpl<typeof KeyManagementService> {
  const { keys, onHealth } = deps;
  let lastKeyId = "";
  return {
    async status(_request, context) {
      const health = await findHealth(keys, lastKeyId, toLimits(context, deps));
      lastKeyId = health.keyId;
      onHealth(health);
      return { version: "v2", ...health };
    },

    async encrypt({ plaintext }, context) {
      try {
        checkPlaintext(plaintext);
        const key = await keys.encapsulate(toLimits(context, deps));
        try {
          return {
            ciphertext: sealEnvelope(key, plaintext),
            keyId: key.keyId,
            annotations: { [kemAnnotation]: key.kemCiphertext },
          };
        } finally {
          wipe(key.sharedSecret);
        }
      } finally {
        wipe(plaintext);
      }
    },

    async decrypt(request, context) {
      const envelope = readEnvelope(request);
      const { keyId, kemCiphertext } = envelope;
      const { algorithm } = await keys.findVersion(keyId, toLimits(context, deps));
      const { ciphertextBytes } = kemAlgorithms[algorithm];
      if (kemCiphertext.length !== ciphertextBytes)
        throw refuseField(
          `annotations["${kemAnnotation}"]`,
          `must have ${ciphertextBytes} bytes for ${algorithm}; it has ${kemCiphertext.length}`,
          "LENGTH_INVALID",
        );
      const sharedSecret = await keys.decapsulate(keyId, kemCiphertext, toLimits(context, deps));
      try {
        const plaintext = openEnvelope(envelope, sharedSecret);
        // The signal also fires once the answer has been written.
        context.signal.addEventListener("abort", () => wipe(plaintext), { once: true });
        return { plaintext };
      } finally {
        wipe(sharedSecret);
      }
    },
  };
}

/** Reserves part of the API server's deadline for the answer, so that it reports why a call took too long. */
function toLimits({ signal, timeoutMs }: HandlerContext, { maxServerMs }: ServiceDeps): CallLimits {
  const leftMs = timeoutMs();
  const shareMs = leftMs === undefined ? maxServerMs : Math.max(1, Math.floor(leftMs * 0.8));
  return { signal, timeoutMs: Math.min(maxServerMs, shareMs) };
}

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
 * If the service does not answer or refuses the token, its last answer counts: the last known ID lets the API
 * server keep writing with its current data encryption key. If the service says that the key cannot be used,
 * an empty ID stops the API server's writes after three minutes.
 */
async function findHealth(keys: KeyService, lastKeyId: string, limits: CallLimits): Promise<Health> {
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
