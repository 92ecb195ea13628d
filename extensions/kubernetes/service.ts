/** v2.KeyManagementService: the calls of the Kubernetes API server. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { KeyManagementService } from "#gen/kubernetes/kms_pb.ts";
import type { CallLimits } from "../../src/cli/connection/api-client.ts";
import { kemAlgorithms } from "../../src/crypto/algorithms.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { refuseField } from "../../src/errors.ts";
import { checkPlaintext, kemAnnotation, openEnvelope, readEnvelope, sealEnvelope } from "./envelope.ts";
import { findHealth, type Health } from "./health.ts";
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
      lastKeyId = health.keyId || lastKeyId;
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
