/** Agreements that wait for their confirmation. They exist only in memory, for a limited time. */
import { wipe } from "../../src/crypto/bytes.ts";
import { refuse, refuseForNow } from "../../src/errors.ts";
import type { AgreedKeys } from "./agreement.ts";
import { reasons } from "./reasons.ts";

/** Each agreement costs the server two encapsulations and a signature. */
export const agreeIntervalMs = 1000;
/** A peer confirms as soon as it has the answer. */
export const agreementLifetimeMs = 15_000;

/** An agreement to confirm. Whoever takes it wipes its keys. */
export interface PendingAgreement {
  readonly epoch: number;
  readonly wireguardKey: Uint8Array;
  readonly gatewayWireguardKey: Uint8Array;
  readonly keys: AgreedKeys;
}

/** A tunnel's newest agreement, from the start of its computation. */
interface Started {
  readonly startedMs: number;
  pending?: PendingAgreement | undefined;
  readonly timer: NodeJS.Timeout;
}

export type Agreements = ReturnType<typeof createAgreements>;

export function createAgreements() {
  const byTunnel = new Map<string, Started>();
  const forget = (tunnelId: string): void => {
    const found = byTunnel.get(tunnelId);
    clearTimeout(found?.timer);
    wipeAgreement(found?.pending);
    byTunnel.delete(tunnelId);
  };
  return {
    /**
     * Starts an agreement, which ends the tunnel's former one.
     *
     * @returns a function that makes it available; it wipes an agreement that was ended meanwhile
     * @throws AGREEMENT_TOO_SOON
     */
    start(tunnelId: string): (pending: PendingAgreement) => void {
      const nowMs = performance.now();
      const waitMs = (byTunnel.get(tunnelId)?.startedMs ?? -agreeIntervalMs) + agreeIntervalMs - nowMs;
      if (waitMs > 0)
        throw refuseForNow(
          reasons.agreementTooSoon,
          `tunnel ${tunnelId} started an agreement less than a second ago; wait`,
          waitMs,
          { tunnelId },
        );
      forget(tunnelId);
      const timer = setTimeout(() => forget(tunnelId), agreementLifetimeMs).unref();
      const started: Started = { startedMs: nowMs, timer };
      byTunnel.set(tunnelId, started);
      return (pending) => {
        if (byTunnel.get(tunnelId) === started) started.pending = pending;
        else wipeAgreement(pending);
      };
    },
    /**
     * Removes the pending agreement of an epoch, so that it has only one attempt.
     *
     * @throws AGREEMENT_NOT_FOUND
     */
    take(tunnelId: string, epoch: number): PendingAgreement {
      const found = byTunnel.get(tunnelId);
      const pending = found?.pending;
      if (found === undefined || pending?.epoch !== epoch) throw agreementNotFound(tunnelId, epoch);
      found.pending = undefined;
      return pending;
    },
    /** Wipes all of them. */
    close(): void {
      for (const tunnelId of [...byTunnel.keys()]) forget(tunnelId);
    },
  };
}

export function wipeAgreement(pending: PendingAgreement | undefined): void {
  if (pending !== undefined) wipe(...Object.values(pending.keys));
}

export function agreementNotFound(tunnelId: string, epoch: number): Error {
  return refuse(
    reasons.agreementNotFound,
    `tunnel ${tunnelId} has no pending agreement for epoch ${epoch}: it was used, replaced or is older than 15 seconds; agree again`,
    { tunnelId, epoch: String(epoch) },
  );
}
