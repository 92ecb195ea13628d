/** The API description of forms, which OAuth 2 calls accept besides JSON. */
import { beforeAll, describe, expect, it } from "vitest";
import { type ApiServer, startApi } from "../../../test/openapi/api-server.ts";
import { findOperation } from "../../../test/openapi/call-examples.ts";
import { createCheck } from "../../../test/openapi/check-schema.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";

let api: ApiServer;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
}, 180_000);

describe("an OAuth 2 call's body in the API description", () => {
  const [formType, json] = ["application/x-www-form-urlencoded", "application/json"];
  const calls = ["IssueToken", "IntrospectToken", "RevokeToken"];

  it.each(calls)("has different schemas for form and JSON: %s", (call) => {
    const { operation } = findOperation(api.document, `oauth.AuthorizationService.${call}`);
    const content = operation.requestBody?.content ?? {};
    expect(Object.keys(content)).toEqual([formType, json]);
    const references = Object.values(content).map(({ schema }) => schema.$ref);
    expect(references).toEqual([
      `#/components/schemas/oauth.${call}RequestForm`,
      `#/components/schemas/oauth.${call}Request`,
    ]);
  });

  it("accepts null in JSON and unknown parameters in forms, as the server does", async () => {
    const { url, document } = api;
    const names = ["oauth.IssueTokenRequest", "oauth.IssueTokenRequestForm"];
    const check = createCheck(document);
    const grant = { grant_type: "client_credentials" };
    const faults = names.map((name) => check(["components", "schemas", name], { ...grant, scope: null }));
    expect(faults).toEqual([[], [expect.stringContaining("/scope must be string")]]);
    const others = names.map((name) => document.components.schemas[name]?.additionalProperties);
    expect(others).toEqual([false, undefined]);
    const send = async (contentType: string, body: string): Promise<number> => {
      const headers = { "content-type": contentType };
      return (await fetch(`${url}/oauth/token`, { method: "POST", headers, body })).status;
    };
    // 401: the request is valid but names no client.
    expect(await send(json, JSON.stringify({ ...grant, scope: null }))).toBe(401);
    expect(await send(json, JSON.stringify({ ...grant, shoe_size: "44" }))).toBe(400);
    expect(await send(formType, "grant_type=client_credentials&shoe_size=44")).toBe(401);
  });
});
