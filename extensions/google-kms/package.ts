import { file_google_cloud_kms_v1_service } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { file_google_cloud_location_locations } from "#gen/google/cloud/location/locations_pb.ts";
import type { ServicePackage } from "../../src/services/registry.ts";
import { googleProfiles } from "./profiles.ts";

export const googlePackage: ServicePackage = {
  name: "google.kms",
  files: [file_google_cloud_kms_v1_service, file_google_cloud_location_locations],
  load: () => import("./module.ts"),
  writes: true,
  profiles: googleProfiles,
  tables: async () => (await import("./tables.ts")).googleTables,
};
