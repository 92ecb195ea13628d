/** The API description of OAuth 2 calls: they take forms, although they accept JSON too. */
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

  it.each(calls)("is a form: %s", (call) => {
    const { operation } = findOperation(api.document, `oauth.AuthorizationService.${call}`);
    const content = operation.requestBody?.content ?? {};
    expect(Object.keys(content)).toEqual([formType]);
    expect(content[formType]?.schema.$ref).toBe(`#/components/schemas/oauth.${call}RequestForm`);
  });

  it("has no null and accepts unknown parameters, as the server does; JSON has null", async () => {
    const { url, document } = api;
    const name = "oauth.IssueTokenRequestForm";
    const grant = { grant_type: "client_credentials" };
    const faults = createCheck(document)(["components", "schemas", name], { ...grant, scope: null });
    expect(faults).toEqual([expect.stringContaining("/scope must be string")]);
    expect(document.components.schemas[name]).not.toHaveProperty("additionalProperties");
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
