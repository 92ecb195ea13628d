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
import { type Refusal, type RequestParts, refusalOf, send } from "./client.ts";
import { createRestServer } from "./rest-server.ts";
import { implementUnary, invalid } from "./rules.ts";

const registry = createRegistry(file_google_cloud_kms_v1_service, file_google_cloud_location_locations);

/** The profile as in the service registry. */
const profiles = {
  [KeyManagementService.typeName]: { restStyle: "google" },
  [Locations.typeName]: { restStyle: "google" },
} as const;

/** What an RPC was called with. */
interface Call {
  readonly rpc: string;
  readonly request: JsonValue;
}

/**
 * Calls Google's services once.
 *
 * @returns the RPC and its request, or the refusal
 */
async function call(line: string, parts?: RequestParts): Promise<Call | Refusal> {
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

const json = (value: JsonValue): RequestParts => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

const { routes } = createRestServer({
  ...defaultBodyLimits,
  services: [KeyManagementService, Locations].map((service) => implementUnary(service, () => () => ({}))),
});

/** A path that a template matches. */
function samplePath({ template }: Route): string {
  const texts = template.segments.map((segment, index) => {
    if (segment.kind === "literal") return segment.text;
    return segment.kind === "one" ? `id-${index}` : `id-${index}/more/segments`;
  });
  return `/${texts.join("/")}${template.verb && `:${template.verb}`}`;
}

describe.each(["path", "method"] as const)("routing by %s", (routingOrder) => {
  const transcoder = createRestServer({
    ...defaultBodyLimits,
    routingOrder,
    services: [KeyManagementService, Locations].map((service) => implementUnary(service, () => () => ({}))),
  });

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
  const rows: [line: string, body: JsonValue | undefined, rpc: string, request: JsonValue][] = [
    [`GET /v1/${version}`, undefined, "GetCryptoKeyVersion", { name: version }],
    [
      `POST /v1/${version}:asymmetricSign`,
      { data: "AQI=", dataCrc32c: "3808858755" },
      "AsymmetricSign",
      { name: version, data: "AQI=", dataCrc32c: "3808858755" },
    ],
    [
      `POST /v1/${version}:asymmetricSign`,
      { digest: { externalMu: "AQ==" } },
      "AsymmetricSign",
      { name: version, digest: { externalMu: "AQ==" } },
    ],
    [`POST /v1/${key}:encrypt`, { plaintext: "AQ==" }, "Encrypt", { name: key, plaintext: "AQ==" }],
    [`POST /v1/${version}:encrypt`, { plaintext: "AQ==" }, "Encrypt", { name: version, plaintext: "AQ==" }],
    [
      "POST /v1/projects/p/locations/global:generateRandomBytes",
      { lengthBytes: 8, protectionLevel: 2 },
      "GenerateRandomBytes",
      { location: "projects/p/locations/global", lengthBytes: 8, protectionLevel: "HSM" },
    ],
    [
      `POST /v1/${ring}/cryptoKeys?cryptoKeyId=k&skipInitialVersionCreation=true`,
      {
        purpose: 5,
        versionTemplate: { algorithm: "PQ_SIGN_ML_DSA_65" },
        labels: { "a-b": "c" },
        destroyScheduledDuration: "86400s",
      },
      "CreateCryptoKey",
      {
        parent: ring,
        cryptoKeyId: "k",
        skipInitialVersionCreation: true,
        cryptoKey: {
          purpose: "ASYMMETRIC_SIGN",
          versionTemplate: { algorithm: "PQ_SIGN_ML_DSA_65" },
          labels: { "a-b": "c" },
          destroyScheduledDuration: "86400s",
        },
      },
    ],
    [
      `PATCH /v1/${key}?updateMask=labels,nextRotationTime`,
      { labels: { a: "b" }, nextRotationTime: "2026-11-21T08:00:00.5Z" },
      "UpdateCryptoKey",
      {
        cryptoKey: { name: key, labels: { a: "b" }, nextRotationTime: "2026-11-21T08:00:00.500Z" },
        updateMask: "labels,nextRotationTime",
      },
    ],
    [
      `PATCH /v1/${version}?updateMask=state`,
      { name: version, state: 2 },
      "UpdateCryptoKeyVersion",
      { cryptoKeyVersion: { name: version, state: "DISABLED" }, updateMask: "state" },
    ],
    [
      `PATCH /v1/${key}?update_mask=versionTemplate.algorithm`,
      {},
      "UpdateCryptoKey",
      { cryptoKey: { name: key }, updateMask: "versionTemplate.algorithm" },
    ],
    // Google's Node client sends paths of two words in this form.
    [
      `PATCH /v1/${key}?updateMask=labels%2Cversion_template.protection_level`,
      {},
      "UpdateCryptoKey",
      { cryptoKey: { name: key }, updateMask: "labels,versionTemplate.protectionLevel" },
    ],
    [
      `GET /v1/${key}/cryptoKeyVersions?pageSize=5&pageToken=a%3D&view=1&filter=state%3DENABLED&orderBy=name`,
      undefined,
      "ListCryptoKeyVersions",
      { parent: key, pageSize: 5, pageToken: "a=", view: "FULL", filter: "state=ENABLED", orderBy: "name" },
    ],
    [
      `GET /v1/${ring}/cryptoKeys?versionView=FULL`,
      undefined,
      "ListCryptoKeys",
      { parent: ring, versionView: "FULL" },
    ],
    [
      `GET /v1/${version}/publicKey?publicKeyFormat=3`,
      undefined,
      "GetPublicKey",
      { name: version, publicKeyFormat: "NIST_PQC" },
    ],
    ["GET /v1/locations?pageSize=1", undefined, "ListLocations", { name: "locations", pageSize: 1 }],
    ["GET /v1/projects/p/locations", undefined, "ListLocations", { name: "projects/p" }],
    [
      "GET /v1/projects/p/locations/global",
      undefined,
      "GetLocation",
      { name: "projects/p/locations/global" },
    ],
    [
      `POST /v1/projects/p/locations/global/keyRings?keyRingId=r`,
      {},
      "CreateKeyRing",
      { parent: "projects/p/locations/global", keyRingId: "r", keyRing: {} },
    ],
    // Google's Node client sends a key ring without fields in this form.
    [
      `POST /v1/projects/p/locations/global/keyRings?keyRingId=r&$alt=json%3Benum-encoding=int`,
      "",
      "CreateKeyRing",
      { parent: "projects/p/locations/global", keyRingId: "r" },
    ],
    [
      `POST /v1/projects/p/locations/global/keyRings?keyRingId=r`,
      undefined,
      "CreateKeyRing",
      { parent: "projects/p/locations/global", keyRingId: "r" },
    ],
  ];
  it.each(rows)("%s %j", async (line, body, rpc, request) => {
    expect(await call(line, body === undefined ? {} : json(body))).toEqual({ rpc, request });
  });

  it("with percent-encoded characters in a name", async () => {
    expect(await call("GET /v1/projects/p%2Dq/locations/global/keyRings/r%5Fs")).toEqual({
      rpc: "GetKeyRing",
      request: { name: "projects/p-q/locations/global/keyRings/r_s" },
    });
  });
});

describe("a request that no Google client sends is refused", () => {
  const rows: [what: string, line: string, body: JsonValue | undefined, refusal: Refusal][] = [
    [
      "a different name in the body",
      `PATCH /v1/${key}?updateMask=labels`,
      { name: `${key}2` },
      invalid("FIELD_CONTRADICTION", "cryptoKey.name"),
    ],
    [
      "an unknown field",
      `POST /v1/${version}:asymmetricSign`,
      { daat: "" },
      invalid("FIELD_INVALID", "daat"),
    ],
    [
      "a field of the body in the query",
      `PATCH /v1/${key}?cryptoKey.purpose=6`,
      {},
      invalid("FIELD_CONTRADICTION", "cryptoKey.purpose"),
    ],
    [
      "an unknown enum value",
      `GET /v1/${key}/cryptoKeyVersions?view=ALL`,
      undefined,
      invalid("FIELD_INVALID", "view"),
    ],
    [
      "a text instead of a body",
      `POST /v1/${key}/cryptoKeyVersions`,
      "x",
      invalid("FIELD_INVALID", "cryptoKeyVersion"),
    ],
    [
      "an update mask in neither proto nor JSON names",
      `PATCH /v1/${key}?updateMask=_labels`,
      {},
      invalid("FIELD_INVALID", "updateMask"),
    ],
  ];
  it.each(rows)("%s", async (_what, line, body, refusal) => {
    expect(await call(line, body === undefined ? {} : json(body))).toEqual(refusal);
  });

  it("an encoded slash in a name belongs to its segment", async () => {
    expect(await call("GET /v1/projects/p/locations/global/keyRings/r%2Fs")).toEqual({
      rpc: "GetKeyRing",
      request: { name: "projects/p/locations/global/keyRings/r%2Fs" },
    });
  });
});
