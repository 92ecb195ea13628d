/** The third-party rules of Google Cloud KMS: their paths, and requests as sent by Google's clients. */
import { createRegistry, type JsonValue, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  file_google_cloud_kms_v1_service,
  KeyManagementService,
} from "#gen/google/cloud/kms/v1/service_pb.ts";
import { file_google_cloud_location_locations, Locations } from "#gen/google/cloud/location/locations_pb.ts";
import type { Route } from "../../src/transcoding/routes.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { type Refusal, refusalOf, send } from "./client.ts";
import { createRestServer } from "./rest-server.ts";
import { type Call, implementUnary, invalid } from "./rules.ts";

const registry = createRegistry(file_google_cloud_kms_v1_service, file_google_cloud_location_locations);

/** The profile as in the service registry. */
const profiles = {
  [KeyManagementService.typeName]: { restStyle: "google" },
  [Locations.typeName]: { restStyle: "google" },
} as const;

/**
 * Calls Google's services once.
 *
 * @returns the RPC and its request, or the refusal
 */
async function call(line: string, body?: JsonValue): Promise<Call | Refusal> {
  const parts =
    body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let called: Call | undefined;
  const services = [KeyManagementService, Locations].map((service) =>
    implementUnary(service, (rpc) => (message) => {
      const desc = registry.getMessage(message.$typeName);
      if (desc === undefined) throw new Error(`${message.$typeName} is unknown`);
      called = { rpc, request: toJson(desc, message, { registry }) };
      return {};
    }),
  );
  const answer = await send(createRestServer({ ...defaultBodyLimits, profiles, services }), line, parts);
  return called ?? refusalOf(answer);
}

const services = [KeyManagementService, Locations].map((service) =>
  implementUnary(service, () => () => ({})),
);
const { routes } = createRestServer({ ...defaultBodyLimits, services });

/** A path that a template matches. */
function samplePath({ template }: Route): string {
  const texts = template.segments.map((segment, index) => {
    if (segment.kind === "literal") return segment.text;
    return segment.kind === "one" ? `id-${index}` : `id-${index}/more/segments`;
  });
  return `/${texts.join("/")}${template.verb && `:${template.verb}`}`;
}

describe.each(["openapi", "google"] as const)("the path convention %s", (pathConvention) => {
  const transcoder = createRestServer({ ...defaultBodyLimits, pathConvention, services });

  it("knows every rule of both services", () => {
    expect(routes).toHaveLength(KeyManagementService.methods.length + 2 * Locations.methods.length);
  });

  it.each(routes.map((route) => [`${route.httpMethod} ${route.template.text}`, route] as const))(
    "reaches %s",
    (_rule, route) => {
      const found = transcoder.find(route.httpMethod, { path: samplePath(route), rawQuery: "" });
      expect(found?.match.route.origin).toBe(route.origin);
    },
  );
});

const ring = "projects/p/locations/global/keyRings/r";
const key = `${ring}/cryptoKeys/k`;
const version = `${key}/cryptoKeyVersions/1`;

describe("a request from a Google client arrives as its message", () => {
  const parent = "projects/p/locations/global";
  it.each<[line: string, body: JsonValue | undefined, rpc: string, request: JsonValue]>([
    [
      `POST /v1/${version}:asymmetricSign`,
      { data: "AQI=", dataCrc32c: "3808858755" },
      "AsymmetricSign",
      { name: version, data: "AQI=", dataCrc32c: "3808858755" },
    ],
    [
      `POST /v1/${ring}/cryptoKeys?cryptoKeyId=k&skipInitialVersionCreation=true`,
      { purpose: 5, labels: { "a-b": "c" } },
      "CreateCryptoKey",
      {
        parent: ring,
        cryptoKeyId: "k",
        skipInitialVersionCreation: true,
        cryptoKey: { purpose: "ASYMMETRIC_SIGN", labels: { "a-b": "c" } },
      },
    ],
    [
      `PATCH /v1/${version}?updateMask=state`,
      { name: version, state: 2 },
      "UpdateCryptoKeyVersion",
      { cryptoKeyVersion: { name: version, state: "DISABLED" }, updateMask: "state" },
    ],
    // Google's Node client sends paths of two words in this form.
    [
      `PATCH /v1/${key}?update_mask=labels%2Cversion_template.protection_level`,
      {},
      "UpdateCryptoKey",
      { cryptoKey: { name: key }, updateMask: "labels,versionTemplate.protectionLevel" },
    ],
    [
      `GET /v1/${key}/cryptoKeyVersions?pageSize=5&pageToken=a%3D&view=1&filter=state%3DENABLED`,
      undefined,
      "ListCryptoKeyVersions",
      { parent: key, pageSize: 5, pageToken: "a=", view: "FULL", filter: "state=ENABLED" },
    ],
    ["GET /v1/locations?pageSize=1", undefined, "ListLocations", { name: "locations", pageSize: 1 }],
    // Google's Node client sends a key ring without fields in this form.
    [
      `POST /v1/${parent}/keyRings?keyRingId=r&$alt=json%3Benum-encoding=int`,
      "",
      "CreateKeyRing",
      { parent, keyRingId: "r" },
    ],
    [`POST /v1/${parent}/keyRings?keyRingId=r`, {}, "CreateKeyRing", { parent, keyRingId: "r", keyRing: {} }],
  ])("%s %j", async (line, body, rpc, request) => {
    expect(await call(line, body)).toEqual({ rpc, request });
  });

  it.each<[what: string, line: string, body: JsonValue, reason: string, field: string]>([
    ["another name", `PATCH /v1/${key}`, { name: `${key}2` }, "FIELD_CONTRADICTION", "cryptoKey.name"],
    ["a text as a body", `POST /v1/${key}/cryptoKeyVersions`, "x", "FIELD_INVALID", "cryptoKeyVersion"],
    ["a mask with invalid names", `PATCH /v1/${key}?updateMask=_labels`, {}, "FIELD_INVALID", "updateMask"],
  ])("but not with %s", async (_what, line, body, reason, field) => {
    expect(await call(line, body)).toEqual(invalid(reason, field));
  });

  it.each([[undefined], [null], [""]])("but not with %j as the changes of a PATCH", async (body) => {
    expect(await call(`PATCH /v1/${key}?updateMask=labels`, body)).toEqual(invalid("JSON_INVALID"));
  });
});
