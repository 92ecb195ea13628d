/** The google.kms package over gRPC and REST, except for keys. */
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { createClient, createRouterTransport, type ServiceImplSpec } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ProtectionLevel } from "#gen/google/cloud/kms/v1/resources_pb.ts";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import { findAbsentCall } from "../../../src/calls/absent-services.ts";
import { isAlwaysRefused } from "../../../src/calls/service-profile.ts";
import { findReason } from "../../../src/errors.ts";
import { failureOf, outcomeOf, refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import type { GoogleDeps } from "../calls.ts";
import { computeCrc32c } from "../crc32c.ts";
import { openGoogleServices } from "../module.ts";
import { googleProfiles } from "../profiles.ts";
import { describeGoogle } from "./google-server.ts";

/** No call below reaches a key. */
const services: readonly ServiceImplSpec[] = openGoogleServices({} as GoogleDeps);
const transport = createRouterTransport((router) => {
  for (const { methods } of services)
    for (const { method, impl } of Object.values(methods)) router.rpc(method, impl as never);
});
const kms = createClient(KeyManagementService, transport);
const locations = createClient(Locations, transport);
const location = "projects/p/locations/global";

describe("GenerateRandomBytes", () => {
  it.each([
    [8, "PROTECTION_LEVEL_UNSPECIFIED"],
    [32, "SOFTWARE"],
    [1024, "HSM"],
  ] as const)("returns %i bytes at %s with their CRC32C, different each time", async (lengthBytes, level) => {
    const request = { location, lengthBytes, protectionLevel: ProtectionLevel[level] };
    const { data, dataCrc32c } = await kms.generateRandomBytes(request);
    expect([data.length, dataCrc32c]).toEqual([lengthBytes, BigInt(computeCrc32c(data))]);
    expect((await kms.generateRandomBytes(request)).data).not.toEqual(data);
  });

  const protectionLevel = ProtectionLevel.EXTERNAL;
  it.each([
    ["7 bytes", { location, lengthBytes: 7 }, "lengthBytes"],
    ["1025 bytes", { location, lengthBytes: 1025 }, "lengthBytes"],
    ["no location", { lengthBytes: 8 }, "location"],
    ["a key ring for a location", { location: `${location}/keyRings/r`, lengthBytes: 8 }, "location"],
    ["an external protection level", { location, lengthBytes: 8, protectionLevel }, "protectionLevel"],
  ])("rejects %s", async (_what, request, field) => {
    expect(await refusal(kms.generateRandomBytes(request))).toEqual(invalid(field));
  });
});

it.each([
  ["rotation_period", "rotationPeriod"],
  ["_labels", "Labels"],
])("UpdateCryptoKey names the path %s of a mask as in JSON", async (path, named) => {
  const cryptoKey = { name: `${location}/keyRings/r/cryptoKeys/k` };
  const { rawMessage } = await failureOf(kms.updateCryptoKey({ cryptoKey, updateMask: { paths: [path] } }));
  expect(rawMessage).toBe(`updateMask: "${named}" cannot be changed; only "labels" can`);
});

describe("Locations", () => {
  it.each([
    ["projects/p", "projects/p/locations/global"],
    ["locations", "locations/global"],
    ["", "locations/global"],
  ])("lists global for %j", async (name, expected) => {
    const { locations: listed, nextPageToken } = await locations.listLocations({ name });
    expect(listed.map((one) => [one.name, one.locationId])).toEqual([[expected, "global"]]);
    expect(nextPageToken).toBe("");
  });

  it.each([
    ["projects/p/locations/global", "global"],
    ["projects/p/locations/europe-west3", "europe-west3"],
    ["locations/us-east1", "us-east1"],
  ])("has every well-formed location: %s", async (name, locationId) => {
    const found = await locations.getLocation({ name });
    expect([found.name, found.locationId, found.displayName]).toEqual([name, locationId, locationId]);
    // @google-cloud/kms over REST does not know its type.
    expect(found.metadata).toBeUndefined();
  });

  it("rejects a project as a location, a filter, a different parent, and a different page's token", async () => {
    expect(await refusal(locations.getLocation({ name: "projects/p" }))).toEqual(invalid("name"));
    expect(await refusal(locations.listLocations({ filter: "a" }))).toEqual(invalid("filter"));
    expect(await refusal(locations.listLocations({ name: location }))).toEqual(invalid("name"));
    expect(await refusal(locations.listLocations({ pageToken: "x" }))).toEqual(invalid("pageToken"));
  });
});

describe("an unsupported call", () => {
  const methods = [KeyManagementService, Locations].flatMap(({ methods }) => methods);
  const others = methods.filter((method) => isAlwaysRefused(method, googleProfiles));

  for (const method of methods)
    it(`is described as such in its profile: ${method.name}`, async () => {
      // All methods of both services are unary.
      const call = transport.unary(method as DescMethodUnary, undefined, undefined, undefined, {});
      expect((await outcomeOf(call)) === "CALL_UNSUPPORTED").toBe(others.includes(method));
    });
});

/** Google Cloud KMS services that this server does not implement. */
const find = (path: string) => findAbsentCall(path, googleProfiles);

describe("a call to an unimplemented service", () => {
  const location = "/v1/projects/p/locations/global";
  it.each([
    "/google.cloud.kms.v1.EkmService/ListEkmConnections",
    "/google.cloud.kms.v1.Autokey/ListKeyHandles",
    "/google.cloud.kms.v1.AutokeyAdmin/GetAutokeyConfig",
    "/google.cloud.kms.v1.HsmManagement/ListSingleTenantHsmInstances",
    `${location}/ekmConfig`,
    `${location}/ekmConnections`,
    `${location}/keyHandles/h`,
    `${location}/singleTenantHsmInstances/i/proposals/p:approve`,
    "/v1/folders/1/autokeyConfig",
    "/v1/projects/p/autokeyConfig",
    "/v1/projects/p:showEffectiveAutokeyConfig",
    "/google.iam.v1.IAMPolicy/GetIamPolicy",
    `${location}/keyRings/r:getIamPolicy`,
    `${location}/keyRings/r/cryptoKeys/k:setIamPolicy`,
    `${location}/keyRings/r/importJobs/j:testIamPermissions`,
    `${location}/ekmConfig:getIamPolicy`,
  ])("is rejected with one sentence: %s", (path) => {
    const error = find(path);
    expect(error && findReason(error)).toBe("CALL_UNSUPPORTED");
    const sentence =
      /^google\.[\w./]+ is not supported; see \/reference on this server for the supported calls$/;
    expect(error?.rawMessage).toMatch(sentence);
  });

  it.each([
    "/google.cloud.kms.v1.EkmServices/List",
    "/google.iam.v1.IAMPolicies/GetIamPolicy",
    `${location}/keyRings/r:getIamPolicies`,
    "/v1/projects/p:getIamPolicy",
    "/api/kms/key/name/projects/p:getIamPolicy",
    `${location}/ekmConnection`,
    `${location}/keyRings/ekmConnections`,
    "/v2/folders/1/autokeyConfig",
    "/",
  ])("does not match other paths: %s", (path) => {
    expect(find(path)).toBeUndefined();
  });
});

describeGoogle("a server without Google's other services", (shared) => {
  const connect = { "content-type": "application/json", "connect-protocol-version": "1" };
  it.each([
    ["GET", "/v1/projects/p/locations/global/ekmConnections", {}, "error.status", "UNIMPLEMENTED"],
    ["GET", "/v1/projects/p/locations/l/keyRings/r:getIamPolicy", {}, "error.status", "UNIMPLEMENTED"],
    ["POST", "/google.cloud.kms.v1.Autokey/ListKeyHandles", connect, "code", "unimplemented"],
  ])("rejects %s %s", async (method, path, headers, property, code) => {
    const { url } = await shared();
    const answer = await fetch(url + path, { method, headers, ...(method !== "GET" && { body: "{}" }) });
    const body = await answer.text();
    expect(answer.status).toBe(501);
    expect(JSON.parse(body)).toHaveProperty(property, code);
    expect(body).toContain("see /reference on this server for the supported calls");
  });
});
