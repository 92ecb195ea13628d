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
import { readPage } from "./lists.ts";
import { checkName } from "./resource-names.ts";

/** The location that lists return. */
const listed = "global";

export function locationCalls(): ServiceImpl<typeof Locations> {
  return {
    listLocations: ({ name, filter, pageSize, pageToken }) => {
      const parent = name === "" || name === "locations" ? "" : `${checkName("project", "name", name)}/`;
      if (filter !== "") throw refuseField("filter", "is not supported; leave it out");
      readPage({ pageSize, pageToken }, `locations of ${parent}`);
      return { locations: [packLocation(`${parent}locations/${listed}`)], nextPageToken: "" };
    },
    getLocation: ({ name }) => {
      const kind = name.startsWith("locations/") ? "location of the server" : "location";
      return packLocation(checkName(kind, "name", name));
    },
  };
}

/** Without the metadata of Google's answers: @google-cloud/kms over REST does not know its type and fails. */
function packLocation(name: string) {
  const locationId = name.slice(name.lastIndexOf("/") + 1);
  return { name, locationId, displayName: locationId };
}
