import { ConnectError } from "@connectrpc/connect";
import type { SendTelemetryRequest } from "#gen/iot/iot_service_pb.ts";
import type { PublicKey } from "../../crypto/provider.ts";
import { findReason } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import { checkSignatureLength } from "../fields.ts";
import { isChallenge } from "./challenges.ts";
import { inOrder } from "./ordered-concurrency.ts";
import { deviceNotFound, type IotDeps, mayActFor, requireDevice } from "./register.ts";
import { buildSignedBytes, findSignatureOptions } from "./signing-contexts.ts";
import { deviceAlgorithm } from "./store.ts";

/** A device reading as requests contain it. */
export type Reading = Omit<SendTelemetryRequest, "$typeName">;

export interface ReadingVerdict {
  /** Empty if the reading is verified. */
  readonly reason: string;
  readonly receivedAt: Date;
}

export interface ReadingChecks {
  /**
   * Checks a reading.
   *
   * First verifies its signature over the telemetry, or over the 8 bytes of the sequence (big-endian) and the
   * telemetry; these bytes must not be a challenge of this server. Then checks that the reading has a
   * sequence if the device's first reading had one, and that the sequence is above the last one.
   *
   * @throws DEVICE_NOT_FOUND, LENGTH_INVALID, RECORD_DAMAGED
   */
  check(reading: Reading, principal: Principal): Promise<ReadingVerdict>;
  /**
   * Checks readings as they arrive: signatures in parallel, sequences in order.
   *
   * @returns one verdict per reading, in order, even for a reading from an unknown device
   */
  checkStream(readings: AsyncIterable<Reading>, principal: Principal): AsyncGenerator<ReadingVerdict>;
}

/** How many readings of a stream to check at a time: enough to share one disk write. */
const streamLimits = {
  items: 256,
  bytes: 8 * 1024 * 1024,
  bytesOf: ({ telemetry, signature }: Reading): number => telemetry.length + signature.length,
};
/** A device with its parsed public key. */
interface KnownDevice {
  readonly deviceId: string;
  readonly owner: string;
  readonly publicKey: PublicKey;
  readonly hasSigningContexts: boolean;
}

/** Maximum number of devices to cache. */
const maxKnown = 10_000;

export function createReadingChecks(deps: IotDeps): ReadingChecks {
  const { provider, store, devices, now } = deps;
  const known = new Map<string, KnownDevice>();

  const findDevice = async (deviceId: string, principal: Principal): Promise<KnownDevice> => {
    let device = known.get(deviceId);
    if (device === undefined) {
      // A device's key, owner and contexts never change.
      const { publicKey: raw, owner, hasSigningContexts } = await requireDevice(devices, deviceId, principal);
      const publicKey = provider.importPublicKey(deviceAlgorithm, { raw });
      device = { deviceId, owner, publicKey, hasSigningContexts };
      if (known.size >= maxKnown) known.clear();
      known.set(deviceId, device);
    }
    if (!mayActFor(principal, device)) throw deviceNotFound(deviceId);
    return device;
  };
  const findFault = async (
    { deviceId, telemetry, signature, sequence }: Reading,
    principal: Principal,
    by = provider,
  ): Promise<"" | "SIGNATURE_INVALID" | "CHALLENGE_AS_READING"> => {
    const device = await findDevice(deviceId, principal);
    checkSignatureLength(deviceAlgorithm, signature);
    const message = buildSignedBytes(telemetry, sequence);
    const options = findSignatureOptions(device, sequence === undefined ? "READING" : "NUMBERED_READING");
    const isSigned = await by.verify(device.publicKey, message, signature, options);
    if (isSigned && !isChallenge(store, message)) return "";
    // The device may have been removed since it was cached, and an unknown device has no other fault.
    await requireDevice(devices, deviceId, principal);
    return isSigned ? "CHALLENGE_AS_READING" : "SIGNATURE_INVALID";
  };
  const accept = async ({ deviceId, sequence }: Reading, receivedAt: Date): Promise<ReadingVerdict> => {
    const fault = await devices.acceptReading({ deviceId, sequence, receivedAt });
    if (fault === "DEVICE_NOT_FOUND") throw deviceNotFound(deviceId);
    return { reason: fault ?? "", receivedAt };
  };
  const refused = (reason: string): ReadingVerdict => ({ reason, receivedAt: now() });

  return {
    async check(reading, principal) {
      const fault = await findFault(reading, principal);
      return fault === "" ? accept(reading, now()) : refused(fault);
    },
    checkStream(readings, principal) {
      /** Settles once the previous reading has its place in the sequence order. */
      let placed = Promise.resolve();
      /** Ends the stream. If later readings were accepted, their sequences would rule out a retry of this one. */
      let failure: { readonly error: unknown } | undefined;
      return inOrder(readings, streamLimits, async (reading) => {
        const before = placed;
        const place = Promise.withResolvers<void>();
        placed = place.promise;
        try {
          const fault = await findFault(reading, principal, provider.unbounded);
          await before;
          if (failure !== undefined) throw failure.error;
          // The store accepts readings in the order of these calls.
          const verdict = fault === "" ? accept(reading, now()) : refused(fault);
          place.resolve();
          return await verdict;
        } catch (error) {
          const reason = findAnswered(error);
          if (reason !== undefined) return refused(reason);
          failure ??= { error };
          throw error;
        } finally {
          // A failed reading does not hold up later ones, which still wait for the earlier ones.
          place.resolve(before);
        }
      });
    },
  };
}

/** Finds the reason of a refusal that the stream answers instead of ending. */
function findAnswered(error: unknown): string | undefined {
  const reason = error instanceof ConnectError ? findReason(error) : undefined;
  return reason === "DEVICE_NOT_FOUND" || reason === "LENGTH_INVALID" ? reason : undefined;
}
