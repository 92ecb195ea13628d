/** The authorization server with unmodified openid-client and jose. */
import { createRemoteJWKSet, customFetch as joseFetch, jwtVerify } from "jose";
import * as client from "openid-client";
import { expect, it, onTestFinished } from "vitest";
import {
  type AccessServer,
  describeAccess,
  makeDatabase,
  startAccessServer,
} from "../../../test/access/access-server.ts";
import { issuerUrl, secret } from "../../../test/support/clients.ts";
import { accessTokenType, exchangeGrant, headerOf, makeClient } from "./tools.ts";

const api = "https://api.example.com";
const jwtType = "urn:ietf:params:oauth:token-type:jwt";

/** Redirects requests for the issuer to the test server, like a proxy. */
function routeTo({ url }: AccessServer): typeof fetch {
  return (target, init) => fetch(String(target).replace(issuerUrl, url), init);
}

function discover(
  server: AccessServer,
  name: string,
  options: client.DiscoveryRequestOptions = {},
  authentication: client.ClientAuth = client.ClientSecretBasic(secret),
): Promise<client.Configuration> {
  const customFetch = routeTo(server) as client.CustomFetch;
  const all = { ...options, [client.customFetch]: customFetch };
  return client.discovery(new URL(issuerUrl), name, undefined, authentication, all);
}

function keysOf(server: AccessServer, config: client.Configuration) {
  const { jwks_uri: uri = "" } = config.serverMetadata();
  return createRemoteJWKSet(new URL(uri), { [joseFetch]: routeTo(server) });
}

describeAccess("openid-client", (shared) => {
  it.each(["oidc", "oauth2"] as const)("discovers the server (%s)", async (algorithm) => {
    const config = await discover(await shared(), "nobody", { algorithm });
    const metadata = config.serverMetadata();
    expect(metadata).toMatchObject({
      issuer: issuerUrl,
      token_endpoint: `${issuerUrl}/oauth/token`,
      introspection_endpoint: `${issuerUrl}/oauth/introspect`,
      revocation_endpoint: `${issuerUrl}/oauth/revoke`,
      jwks_uri: `${issuerUrl}/oauth/jwks`,
      grant_types_supported: ["client_credentials", exchangeGrant],
      scopes_supported: expect.arrayContaining(["kms.sign", "metrics.read"]),
      response_types_supported: expect.anything(),
    });
    // RFC 8414, section 3.2: an empty list must be left out.
    const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
    expect(Object.values(metadata).filter(isEmpty)).toEqual([]);
  });

  it.each([
    ["client_secret_basic", client.ClientSecretBasic(secret)],
    ["client_secret_post", client.ClientSecretPost(secret)],
  ] as const)("gets, introspects and revokes a token with %s", async (_method, authentication) => {
    const server = await shared();
    const name = await makeClient(server, { scopes: ["kms.read", "kms.sign"], audiences: [api] });
    const config = await discover(server, name, {}, authentication);
    const granted = await client.clientCredentialsGrant(config, { scope: "kms.read", resource: api });
    expect(granted).toMatchObject({ token_type: "bearer", expires_in: 3600, scope: "kms.read" });
    const found = await client.tokenIntrospection(config, granted.access_token);
    expect(found).toMatchObject({ active: true, client_id: name, sub: name, aud: [api], scope: "kms.read" });
    await client.tokenRevocation(config, granted.access_token);
    expect(await client.tokenIntrospection(config, granted.access_token)).toEqual({ active: false });
  });

  it("receives the server's errors as OAuth 2 errors", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes: ["kms.read"] });
    const config = await discover(server, name);
    await expect(client.clientCredentialsGrant(config, { scope: "kms.sign" })).rejects.toMatchObject({
      error: "invalid_scope",
      status: 400,
    });
    const wrong = await discover(server, name, {}, client.ClientSecretBasic("wrong"));
    await expect(client.clientCredentialsGrant(wrong)).rejects.toMatchObject({
      code: "OAUTH_WWW_AUTHENTICATE_CHALLENGE",
      status: 401,
    });
  });

  it("exchanges a user's token for one that jose verifies on the other server", async () => {
    const server = await shared();
    const ada = await server.makePerson();
    const name = await makeClient(server, { scopes: ["kms.read"], audiences: [api], mayExchange: true });
    const config = await discover(server, name);
    const granted = await client.genericGrantRequest(config, exchangeGrant, {
      subject_token: ada.token,
      subject_token_type: jwtType,
      audience: api,
    });
    expect(granted).toMatchObject({ issued_token_type: accessTokenType, scope: "kms.read" });
    const { payload } = await jwtVerify(granted.access_token, keysOf(server, config), {
      issuer: issuerUrl,
      audience: api,
      typ: "at+jwt",
    });
    expect(payload).toMatchObject({ sub: ada.name, client_id: name, act: { sub: name } });
  });

  it.each(["ML-DSA-65", "ML-DSA-44"] as const)("gets %s tokens, which jose verifies", async (algorithm) => {
    const database = await makeDatabase(onTestFinished);
    const args = ["--access-token-algorithm", algorithm];
    const server = await startAccessServer({ atEnd: onTestFinished, database, args });
    const name = await makeClient(server, { scopes: ["kms.read"] });
    const config = await discover(server, name);
    const { access_token: token } = await client.clientCredentialsGrant(config);
    expect(headerOf(token)).toMatchObject({ alg: algorithm, typ: "at+jwt" });
    const options = { issuer: issuerUrl, audience: issuerUrl, typ: "at+jwt", algorithms: [algorithm] };
    const { payload } = await jwtVerify(token, keysOf(server, config), options);
    expect(payload).toMatchObject({ iss: issuerUrl, sub: name, client_id: name, scope: "kms.read" });
    const wrong = { ...options, audience: api };
    await expect(jwtVerify(token, keysOf(server, config), wrong)).rejects.toMatchObject({ claim: "aud" });
    const keys = new URL(`${issuerUrl}/api/kms/keys`);
    expect((await client.fetchProtectedResource(config, token, keys, "GET")).status).toBe(200);
  });
});
