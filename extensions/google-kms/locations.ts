/**
 * google.cloud.location.Locations: unpack, call, pack.
 *
 * A location is only a part of names here: the server runs where its operator started it. Programs that move from
 * Google keep their names, so every well-formed location exists. A list cannot name them all, and names "global".
 */

import type { ServiceImpl } from "@connectrpc/connect";
import type { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import { refuseField } from "../../src/errors.ts";
import { readPage } from "./pages.ts";
import { parseLocationOfAnyParent, parseLocationsParent } from "./resource-names.ts";

/** The location of lists. */
const listed = "global";

/** Implements the service. */
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

/** Without the metadata of Google's answers: the REST client of @google-cloud/kms does not know its type, and fails. */
function packLocation(parent: string, locationId: string) {
  return {
    name: `${parent}locations/${locationId}`,
    locationId,
    displayName: locationId,
  };
}
