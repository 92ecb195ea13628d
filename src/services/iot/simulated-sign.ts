import { refuse, refuseField } from "../../errors.ts";
import type { Viewer } from "../../records/ownership.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import { type IotParts, requireDevice } from "./register.ts";
import { readPurpose, signatureOptionsOf } from "./signing-contexts.ts";
import { sealedKeyOf } from "./store.ts";

/** What a simulated device is to sign. */
export interface SimulatedSignOrder {
  readonly deviceId: string;
  readonly data: Uint8Array;
  /** A SigningPurpose, or empty. */
  readonly purpose: string;
}

/**
 * Signs as a simulated device (FIPS 204, section 5.2, ML-DSA-44, pure): with the context of the purpose if the device has
 * signing contexts, otherwise with an empty one.
 *
 * @throws DEVICE_NOT_FOUND, DEVICE_NOT_SIMULATED, RECORD_DAMAGED; FIELD_INVALID if the device needs a purpose
 */
export async function simulatedSign(
  { provider, store, devices }: IotParts,
  { deviceId, data, purpose: text }: SimulatedSignOrder,
  viewer: Viewer,
): Promise<Uint8Array> {
  const device = await requireDevice(devices, deviceId, viewer);
  if (!device.isSimulated)
    throw refuse("DEVICE_NOT_SIMULATED", `device ${deviceId} keeps its own key; only the device can sign`, {
      deviceId,
    });
  const purpose = readPurpose(text);
  if (device.hasSigningContexts && purpose === undefined)
    throw refuseField(
      "purpose",
      `is missing; device ${deviceId} has signing contexts: give CHALLENGE, READING or NUMBERED_READING`,
    );
  const options = purpose === undefined ? {} : signatureOptionsOf(device, purpose);
  return withSealedKey(store, provider, sealedKeyOf(device), (secretKey) =>
    provider.sign(secretKey, data, options),
  );
}
