/**
 * google.cloud.location.Locations: unpack, call, pack.
 *
 * Here a location is only part of a name: the server runs where its operator started it. Programs that
 * migrate from Google keep their names, so every well-formed location exists. A list cannot name them all and
 * returns "global".
 */

import type { ServiceImpl } from "@connectrpc/connect";
import type { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import { refuseField } from "../../src/errors.ts";
import { readPage } from "./pages.ts";
import { parseLocationOfAnyParent, parseLocationsParent } from "./resource-names.ts";

/** The location that lists return. */
const listed = "global";

export function locationCalls(): ServiceImpl<typeof Locations> {
  return {
    listLocations: ({ name, filter, pageSize, pageToken }) => {
      const parent = parseLocationsParent("name", name);
      if (filter !== "") throw refuseField("filter", "is not supported; leave it out");
      readPage({ pageSize, pageToken }, `locations of ${parent}`);
      return { locations: [packLocation(parent, listed)], nextPageToken: "" };
    },
    getLocation: ({ name }) => {
      const { parent, location } = parseLocationOfAnyParent("name", name);
      return packLocation(parent, location);
    },
  };
}

/** Without the metadata of Google's answers: @google-cloud/kms over REST does not know its type and fails. */
function packLocation(parent: string, locationId: string) {
  return {
    name: `${parent}locations/${locationId}`,
    locationId,
    displayName: locationId,
  };
}
