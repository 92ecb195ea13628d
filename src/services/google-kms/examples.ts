import { example } from "../../protocol/example.ts";

const service = "google.cloud.kms.v1.KeyManagementService";
const locations = "google.cloud.location.Locations";
const location = "projects/demo/locations/global";

/** Example requests for each call, in the order in which they work. */
export const examples = [
  example(`${locations}.ListLocations`, "google-list-locations", "Lists the locations."),
  example(`${locations}.GetLocation`, "google-get-location", "Requests one location.", {
    name: "locations/global",
  }),
  example(`${service}.GenerateRandomBytes`, "google-generate-random-bytes", "Generates 32 random bytes.", {
    location,
    lengthBytes: 32,
    protectionLevel: "HSM",
  }),
];
