/** Google Cloud KMS services that this server does not implement. */
import { describe, expect, it } from "vitest";
import { findAbsentCall } from "../../../src/calls/absent-services.ts";
import { findReason } from "../../../src/errors.ts";
import { googleProfiles } from "../profiles.ts";
import { describeGoogle } from "./google-server.ts";

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
    expect(error?.rawMessage).toMatch(
      /^google\.[\w./]+ is not supported; see \/reference on this server for the supported calls$/,
    );
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
