import type { SimulatedSignRequest } from "#gen/iot/iot_service_pb.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import { type IotDeps, requireDevice } from "./register.ts";
import { findSignatureOptions, readPurpose } from "./signing-contexts.ts";
import { deviceAlgorithm } from "./store.ts";
import { deviceTable } from "./tables.ts";

/**
 * Signs as a simulated device (FIPS 204, section 5.2, ML-DSA-44, pure): with the context for the purpose if
 * the device has signing contexts, otherwise with an empty one.
 *
 * @throws DEVICE_NOT_FOUND, DEVICE_NOT_SIMULATED, RECORD_DAMAGED; FIELD_INVALID if the device needs a
 *   purpose
 */
export async function simulatedSign(
  deps: IotDeps,
  { deviceId, data, purpose: text }: SimulatedSignRequest,
  principal: Principal,
): Promise<Uint8Array> {
  const device = await requireDevice(deps.devices, deviceId, principal);
  if (!device.isSimulated)
    throw refuse("DEVICE_NOT_SIMULATED", `device ${deviceId} keeps its own key; only the device can sign`, {
      deviceId,
    });
  const purpose = readPurpose(text);
  if (device.hasSigningContexts && purpose === undefined)
    throw refuseField(
      "purpose",
      `is missing; device ${deviceId} has signing contexts: send CHALLENGE, READING or NUMBERED_READING`,
    );
  const options = purpose === undefined ? {} : findSignatureOptions(device, purpose);
  const key = describeSealedKey(deviceTable, deviceAlgorithm, device);
  return withSealedKey(deps, key, (secretKey) => deps.provider.sign(secretKey, data, options));
}
