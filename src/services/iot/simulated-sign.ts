import { refuse } from "../../errors.ts";
import type { Viewer } from "../../storage/ownership.ts";
import { withSealedKey } from "../../storage/sealed-keys.ts";
import { type IotParts, requireDevice } from "./register.ts";
import { sealedKeyOf } from "./store.ts";

/**
 * Signs as a simulated device (FIPS 204, section 5.2, ML-DSA-44, pure, empty context).
 *
 * @throws DEVICE_NOT_FOUND, DEVICE_NOT_SIMULATED, RECORD_DAMAGED
 */
export async function simulatedSign(
  { provider, store, devices }: IotParts,
  deviceId: string,
  data: Uint8Array,
  viewer: Viewer,
): Promise<Uint8Array> {
  const device = await requireDevice(devices, deviceId, viewer);
  if (!device.isSimulated)
    throw refuse("DEVICE_NOT_SIMULATED", `device ${deviceId} keeps its own key; only the device can sign`, {
      deviceId,
    });
  return withSealedKey(store, provider, sealedKeyOf(device), (secretKey) => provider.sign(secretKey, data));
}
