import type { ReportFirmwareRequest } from "#gen/iot/iot_service_pb.ts";
import type { Principal } from "../../records/ownership.ts";
import { deviceNotFound, type IotDeps } from "./register.ts";

/**
 * Records what the calling device says that it runs.
 *
 * @param principal a device: the access rule of the call admits no other
 * @returns the time of the report
 * @throws DEVICE_NOT_FOUND, RECORD_DAMAGED
 */
export function reportFirmware(
  { store, devices, now }: IotDeps,
  { targetPath: reportedPath, version: reportedVersion, firmwareHash: reportedHash }: ReportFirmwareRequest,
  { deviceId = "" }: Principal,
): Promise<Date> {
  return store.write(async (transaction) => {
    const state = await devices.readState(transaction, deviceId);
    if (state === undefined) throw deviceNotFound(deviceId);
    const reportedAt = now();
    const isSame = reportedHash === state.reportedHash && reportedVersion === (state.reportedVersion ?? "");
    await devices.saveState(transaction, deviceId, {
      ...state,
      ...{ reportedPath, reportedVersion, reportedHash, reportedAt, lastSeenAt: reportedAt },
      previousVersion: isSame ? state.previousVersion : state.reportedVersion,
    });
    return reportedAt;
  });
}
