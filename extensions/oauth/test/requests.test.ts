/** Token endpoint requests and answers: RFC 6749, 8693, 8707 and 9068. */

import { pino } from "pino";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  type AccessServer,
  issueTo,
  startAccessServer,
  timeout,
} from "../../../test/access/access-server.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { issuerUrl, secret } from "../../../test/support/clients.ts";
import { hashCheaply, password } from "../../../test/support/passwords.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { issueToken } from "../issue-token.ts";
import {
  type Answer,
  accessTokenType,
  basicOf,
  claimsOf,
  exchange,
  exchangeGrant,
  type Form,
  headerOf,
  introspect,
  makeClient,
  postForm,
  requestToken,
  revoke,
  useToken,
} from "./tools.ts";

const api = "https://api.example.com";
const grant = { grant_type: "client_credentials" };
const lines: string[] = [];
const atEnd = endAfterAll();
let server: AccessServer;
let name: string;

beforeAll(async () => {
  const logger = pino({ level: "trace" }, { write: (line) => void lines.push(line) });
  server = await startAccessServer({ atEnd, logger, args: ["--max-failed-logins", "3"] });
  name = await makeClient(server, { scopes: ["kms.read", "kms.sign"], audiences: [api, "ledger"] });
}, timeout);

const post = (form: Form, headers: Record<string, string> = basicOf(name)): Promise<Answer> =>
  postForm(server, "/oauth/token", form, headers);

/** What a client acts on: status and error. */
const errorOf = ({ status, body }: Answer): [number, string] => [status, body.error];

describe("the token endpoint", { timeout }, () => {
  it("answers as RFC 6749, section 5.1, specifies", async () => {
    const { status, headers, body } = await post(grant);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("application/json");
    expect([headers.get("cache-control"), headers.get("pragma")]).toEqual(["no-store", "no-cache"]);
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: "Bearer",
      expires_in: 3600,
      scope: "kms.read kms.sign",
    });
  });

  it("writes the header and claims of RFC 9068, section 2", async () => {
    const { body } = await post({ ...grant, scope: "kms.sign" });
    expect(headerOf(body.access_token)).toEqual({ alg: "ML-DSA-65", typ: "at+jwt", kid: expect.any(String) });
    const claims = claimsOf(body.access_token);
    expect(claims).toEqual({
      iss: issuerUrl,
      sub: name,
      aud: issuerUrl,
      client_id: name,
      scope: "kms.sign",
      jti: expect.any(String),
      cgen: expect.any(String),
      iat: expect.any(Number),
      exp: Number(claims.iat) + 3600,
    });
  });

  it("ignores unknown parameters and parameters without a value", async () => {
    const form = "grant_type=client_credentials&scope=&bogus=1&bogus=2&resource=";
    expect(errorOf(await post(form))).toEqual([200, undefined]);
  });

  it.each(["grant_type", "scope", "client_id"])("rejects a repeated %s", async (parameter) => {
    const form = `grant_type=client_credentials&${parameter}=a&${parameter}=b`;
    expect(errorOf(await post(form))).toEqual([400, "invalid_request"]);
  });

  it.each([
    ["no grant_type", { scope: "kms.read" }, "invalid_request"],
    ["an empty grant_type", { grant_type: "" }, "invalid_request"],
    ["an unsupported grant", { grant_type: "password" }, "unsupported_grant_type"],
    ["the grant in different case", { grant_type: "Client_Credentials" }, "unsupported_grant_type"],
    ["a refresh token", { grant_type: "refresh_token", refresh_token: "a" }, "unsupported_grant_type"],
    ["a scope that the client does not have", { ...grant, scope: "kms.admin" }, "invalid_scope"],
    ["a scope in different case", { ...grant, scope: "KMS.read" }, "invalid_scope"],
    ["one invalid scope among several", { ...grant, scope: "kms.read kms.admin" }, "invalid_scope"],
    ["a resource that is not a URL", { ...grant, resource: "ledger" }, "invalid_target"],
    ["a resource with a fragment", { ...grant, resource: `${api}#a` }, "invalid_target"],
    ["an unregistered resource", { ...grant, resource: "https://other.example.com" }, "invalid_target"],
    ["a resource that begins like another", { ...grant, resource: `${api}.evil.com` }, "invalid_target"],
    ["an unregistered audience", { ...grant, audience: "other" }, "invalid_target"],
    ["an unpermitted exchange", { grant_type: exchangeGrant, subject_token: "a" }, "unauthorized_client"],
  ])("rejects %s", async (_what, form, error) => {
    const answer = await post(form as Record<string, string>);
    expect(errorOf(answer)).toEqual([400, error]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.body.error_description).toMatch(/^[ !#-[\]-~]+$/);
  });

  it("issues a token for several resources and audiences", async () => {
    const query = new URLSearchParams({ ...grant, resource: api, audience: "ledger" });
    query.append("resource", issuerUrl);
    const { body } = await post(query.toString());
    expect(claimsOf(body.access_token).aud).toEqual([api, issuerUrl, "ledger"]);
  });

  it("issues a token without scopes or the scope claim to a client that has none", async () => {
    const other = await makeClient(server, { audiences: [api] });
    const { body } = await requestToken(server, other, { resource: api });
    expect(body).not.toHaveProperty("scope");
    expect(claimsOf(body.access_token)).not.toHaveProperty("scope");
    const found = await introspect(server, other, body.access_token);
    expect(found.body).toMatchObject({ active: true, sub: other });
    expect(found.body).not.toHaveProperty("scope");
  });

  it("rejects GET and other media types", async () => {
    const response = await fetch(`${server.url}/oauth/token`);
    expect([response.status, await response.json()]).toMatchObject([405, { error: "invalid_request" }]);
    const headers = { ...basicOf(name), "content-type": "text/plain" };
    expect(errorOf(await post("grant_type=client_credentials", headers))).toEqual([415, "invalid_request"]);
  });

  it("reports a missing issuer URL", async () => {
    const open = await startAccessServer({ atEnd, args: ["--issuer-url", ""] });
    const answer = await requestToken(open, "nobody");
    expect(errorOf(answer)).toEqual([400, "invalid_request"]);
    expect(answer.body.error_description).toContain("--issuer-url");
    expect((await fetch(`${open.url}/.well-known/oauth-authorization-server`)).status).toBe(400);
  });
});

describe("client authentication", { timeout }, () => {
  const byForm = (clientId: string) => ({ ...grant, client_id: clientId, client_secret: secret });

  it.each(["a+b@example.com", "Zürich", "клиент"])("accepts the name %s in both forms", async (other) => {
    await makeClient(server, {}, other);
    expect((await post(grant, basicOf(other))).status).toBe(200);
    expect((await post(byForm(other), {})).status).toBe(200);
  });

  it("accepts unnecessary percent-encoding in HTTP Basic", async () => {
    const encoded = [...name].map((one) => `%${one.charCodeAt(0).toString(16)}`).join("");
    const authorization = `Basic ${Buffer.from(`${encoded}:${secret}`).toString("base64")}`;
    expect((await post(grant, { authorization })).status).toBe(200);
  });

  it("rejects both methods at once", async () => {
    expect(errorOf(await post(byForm(name)))).toEqual([400, "invalid_request"]);
    expect(errorOf(await post({ ...grant, client_id: "other" }))).toEqual([400, "invalid_request"]);
  });

  const encode = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
  it.each([
    ["nothing", {}],
    ["an unknown client", basicOf("nobody")],
    ["a wrong secret", basicOf("nobody", "a".repeat(43))],
    ["no colon", encode("nobody")],
    ["an empty secret", encode("nobody:")],
    ["broken percent-encoding", encode("nobody:%zz")],
    ["percent-encoded bytes that are not UTF-8", encode("nobody:%ff")],
    ["a NUL in the name", encode(`%00:${secret}`)],
    ["bytes that are not base64", { authorization: "Basic !!!" }],
    ["the scheme alone", { authorization: "Basic" }],
    ["credentials longer than any client_id and client_secret", encode(`name:${"+".repeat(6200)}`)],
    ["a user's token", { authorization: "Bearer abc" }],
    ["a very long name", encode(`${"a".repeat(9000)}:${secret}`)],
  ])("answers %s with 401 and an HTTP Basic challenge", async (_what, headers) => {
    for (const path of ["/oauth/token", "/oauth/introspect", "/oauth/revoke"]) {
      const form = { ...grant, token: "abc" };
      const answer = await postForm(server, path, form, headers as Record<string, string>);
      expect(errorOf(answer)).toEqual([401, "invalid_client"]);
      expect(answer.headers.get("www-authenticate")).toBe('Basic realm="oauth", charset="UTF-8"');
    }
  });

  it("answers an unknown client and a wrong secret with the same words", async () => {
    const wrong = [basicOf("nobody"), basicOf(name, "a".repeat(43)), basicOf(name, `${secret}A`)];
    const answers = await Promise.all(wrong.map((headers) => post(grant, headers)));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  it("does not read credentials from the URL, and never repeats them", async () => {
    for (const value of [secret, `${secret}%zz`]) {
      const query = `?client_id=${name}&client_secret=${value}`;
      for (const target of [query, `?client_secret=${value}`]) {
        const answer = await postForm(server, `/oauth/token${target}`, grant, {});
        expect(errorOf(answer)).toEqual([400, "invalid_request"]);
        expect(JSON.stringify(answer.body)).not.toContain(secret);
      }
    }
  });
});

describe("token exchange", { timeout }, () => {
  let gateway: string;
  let ada: Awaited<ReturnType<AccessServer["makePerson"]>>;
  beforeAll(async () => {
    const scopes = ["kms.read", "kms.sign"];
    gateway = await makeClient(server, { scopes, audiences: [api], mayExchange: true });
    ada = await server.makePerson();
  });

  it("returns a token for the user, limited to the client's scopes", async () => {
    const { status, body } = await exchange(server, gateway, ada.token);
    expect(status).toBe(200);
    expect(claimsOf(body.access_token)).toMatchObject({
      sub: ada.name,
      client_id: gateway,
      act: { sub: gateway },
      scope: "kms.read kms.sign",
      aud: issuerUrl,
    });
  });

  it("does not extend a token's life", async () => {
    const earlier = await server.office.issuerAt(new Date(Date.now() - 3000_000));
    const { generation = "" } = (await server.office.users.find(ada.name)) ?? {};
    const { token, expiresAt } = await earlier.issue(ada.name, { generation });
    const { body } = await exchange(server, gateway, token);
    expect(claimsOf(body.access_token).exp).toBe(expiresAt.getTime() / 1000);
    expect(body.expires_in).toBeLessThanOrEqual(600);
  });

  it("is refused if the token expires in the meantime, instead of expires_in: 0", async () => {
    const expiresAt = new Date();
    const claims = { ok: true, subject: ada.name, issuedAt: expiresAt, expiresAt };
    const issuer = {
      check: async () => claims,
      issueAccessToken: async () => ({ issuedAt: expiresAt, expiresAt }),
    };
    const deps = { issuer, issuerUrl, accounts: { clients: { find: async () => undefined } } };
    const call = { client: { mayExchange: true, scopes: [], resources: [] }, isAbout() {} };
    const types = { grantType: exchangeGrant, subjectTokenType: accessTokenType, requestedTokenType: "" };
    const given = { subjectToken: "token", actorToken: "", actorTokenType: "", scope: "" };
    const request = { ...types, ...given, resource: [], audience: [] };
    expect(await refusal(issueToken(deps as never, call as never, request))).toMatchObject({
      reason: "SUBJECT_TOKEN_INVALID",
    });
  });

  it("lists all clients that acted for the user, and is refused after a few exchanges", async () => {
    const other = await makeClient(server, { scopes: ["kms.read"], audiences: [api], mayExchange: true });
    let token = ada.token;
    for (const by of [gateway, other, gateway, other]) {
      const { status, body } = await exchange(server, by, token);
      expect(status).toBe(200);
      token = body.access_token;
    }
    const cgen = expect.any(String);
    const first = { sub: gateway, cgen };
    const second = { sub: other, cgen, act: first };
    expect(claimsOf(token).act).toEqual({ sub: other, act: { sub: gateway, cgen, act: second } });
    const { body } = await introspect(server, other, token);
    const earlier = { sub: gateway, act: { sub: other, act: { sub: gateway } } };
    expect([body.sub, body.act]).toEqual([claimsOf(token).sub, { sub: other, act: earlier }]);
    token = (await exchange(server, gateway, token)).body.access_token;
    expect(errorOf(await exchange(server, gateway, token))).toEqual([400, "invalid_request"]);
  });

  it("returns a token that ends when any token it came from is revoked", async () => {
    const { body: first } = await exchange(server, gateway, ada.token);
    const { body: second } = await exchange(server, gateway, first.access_token);
    const { body: third } = await exchange(server, gateway, second.access_token);
    const { body: beside } = await exchange(server, gateway, first.access_token);
    await revoke(server, gateway, second.access_token);
    const isActive = async (token: string) => (await introspect(server, gateway, token)).body.active;
    const active = [first, second, third, beside].map(({ access_token }) => isActive(access_token));
    expect(await Promise.all(active)).toEqual([true, false, false, true]);
  });

  it("does not restore a scope that the token has lost", async () => {
    const { body } = await exchange(server, gateway, ada.token, { scope: "kms.read" });
    const again = await exchange(server, gateway, body.access_token);
    expect(again.body.scope).toBe("kms.read");
    const more = await exchange(server, gateway, body.access_token, { scope: "kms.sign" });
    expect(errorOf(more)).toEqual([400, "invalid_scope"]);
  });

  it("is refused if client and token have no scope in common, even without a requested scope", async () => {
    const { body } = await exchange(server, gateway, ada.token);
    for (const scopes of [["tuf.read"], []]) {
      const other = await makeClient(server, { scopes, mayExchange: true });
      const refused = await exchange(server, other, body.access_token);
      expect(errorOf(refused)).toEqual([400, "invalid_scope"]);
    }
  });

  it("returns all possible scopes for a list of none", async () => {
    const { body } = await exchange(server, gateway, ada.token, { scope: "  " });
    expect(body.scope).toBe("kms.read kms.sign");
  });

  it("of a token without scopes returns a token without scopes", async () => {
    const make = () => makeClient(server, { mayExchange: true });
    const { body } = await exchange(server, await make(), ada.token);
    const { body: further } = await exchange(server, await make(), body.access_token);
    expect(claimsOf(further.access_token)).not.toHaveProperty("scope");
  });

  const typeOf = (name: string) => `urn:ietf:params:oauth:token-type:${name}`;
  it.each<[string, Record<string, string>]>([
    ["no subject_token", { subject_token: "" }],
    ["an invalid token", { subject_token: "abc" }],
    ["no subject_token_type", { subject_token_type: "" }],
    ["an ID token", { subject_token_type: typeOf("id_token") }],
    ["a request for a refresh token", { requested_token_type: typeOf("refresh_token") }],
    ["an actor", { actor_token: "abc" }],
    ["an actor token type without an actor token", { actor_token_type: accessTokenType }],
  ])("rejects %s with invalid_request, as RFC 8693, section 2.2.2, specifies", async (_what, form) => {
    expect(errorOf(await exchange(server, gateway, ada.token, form))).toEqual([400, "invalid_request"]);
  });

  it("rejects an audience not allowed to the client, and a token that names neither this server nor the client", async () => {
    const { body } = await exchange(server, gateway, ada.token, { resource: api });
    const foreign = await exchange(server, gateway, ada.token, { audience: "ledger" });
    expect(errorOf(foreign)).toEqual([400, "invalid_target"]);
    const other = await makeClient(server, { scopes: ["kms.read"], mayExchange: true });
    expect(errorOf(await exchange(server, other, body.access_token))).toEqual([400, "invalid_request"]);
    const named = await makeClient(server, { scopes: ["kms.read"], resources: [api], mayExchange: true });
    expect((await exchange(server, named, body.access_token)).status).toBe(200);
  });

  it("rejects another client's own token, and accepts the client's own", async () => {
    const theirs = (await requestToken(server, name)).body.access_token;
    expect(errorOf(await exchange(server, gateway, theirs))).toEqual([400, "invalid_request"]);
    const own = (await requestToken(server, gateway)).body.access_token;
    const { body } = await exchange(server, gateway, own, { scope: "kms.read" });
    expect(claimsOf(body.access_token)).toMatchObject({ sub: gateway, scope: "kms.read" });
  });

  it("rejects a device's token, a removed user's token, and an expired one", async () => {
    const device = (await server.office.issuer.issue("device-1", { header: { use: "iot" } })).token;
    const eve = await server.makePerson();
    await server.office.users.remove(eve.name);
    const earlier = await server.office.issuerAt(new Date(Date.now() - 3601_000));
    const { generation = "" } = (await server.office.users.find(ada.name)) ?? {};
    const ended = (await earlier.issue(ada.name, { generation })).token;
    for (const token of [device, eve.token, ended])
      expect(errorOf(await exchange(server, gateway, token))).toEqual([400, "invalid_request"]);
  });

  it("acts only for the user, with the user's keys and role", async () => {
    const { body } = await exchange(server, gateway, ada.token);
    const { result } = await ada.kms.createKey({ algorithm: "ML-DSA-44" });
    const { kms } = server.connect(`Bearer ${body.access_token}`);
    expect((await kms.getKey({ keyId: result?.keyId ?? "" })).result?.keyId).toBe(result?.keyId);
    expect((await introspect(server, gateway, body.access_token)).body.role).toBe("user");
  });
});

/** Fails far more often than log-ins may fail. */
async function failOften(client: string): Promise<number[]> {
  const attempts = Array.from({ length: 30 }, () =>
    postForm(server, "/oauth/token", grant, basicOf(client, "A".repeat(43))),
  );
  return [...new Set((await Promise.all(attempts)).map(({ status }) => status))];
}

describe("wrong secrets", { timeout }, () => {
  it("never lock a client out, whoever sends them", async () => {
    expect(await failOften(name)).toEqual([401]);
    expect((await requestToken(server, name)).status).toBe(200);
  });

  it("do not keep users on the same network from logging in", async () => {
    const ada = { name: "ada", role: "user", passwordHash: hashCheaply(password) } as const;
    await server.office.users.add(ada, new Date());
    await failOften("nobody");
    const { token } = await server.connect().tokens.issueToken({ username: "ada", password });
    expect(token).not.toBe("");
  });
});

describe("a client's secret", { timeout }, () => {
  const wrongHashes = ["", "sha256$", "none", "scrypt$1$1$1$AAAA$AAAA"];
  it.each(wrongHashes)("never matches the stored hash %j", async (secretHash) => {
    const other = await makeClient(server, { secretHash });
    for (const given of [secret, "A".repeat(43), secretHash])
      expect((await postForm(server, "/oauth/token", grant, basicOf(other, given))).status).toBe(401);
  });

  it("is reported as damaged if the database contains an invalid hash", async () => {
    const other = await makeClient(server);
    const mine = await server.office.clients.find(name);
    await server.tamper((db) =>
      db
        .updateTable("oauth_clients")
        .set({ secret_hash: mine?.secretHash ?? "", role: "admin" })
        .where("name", "=", other)
        .execute(),
    );
    expect((await requestToken(server, other)).status).toBe(500);
  });

  it("never appears in the log, and neither do tokens, at any level", async () => {
    const wrong = "W".repeat(43);
    const by = (clientSecret: string) => ({ ...grant, client_id: name, client_secret: clientSecret });
    for (const form of [
      by(wrong),
      { ...by(secret), scope: "x" },
      `client_secret=${wrong}&client_secret=${wrong}`,
      `client_secret=${wrong}%zz`,
      by(wrong.repeat(100)),
    ])
      await postForm(server, "/oauth/token", form, {});
    await postForm(server, `/oauth/token?client_secret=${wrong}%zz`, grant, {});
    const { access_token: token } = (await requestToken(server, name)).body;
    await introspect(server, name, token);
    await introspect(server, name, `${token}x`);
    await revoke(server, name, token);
    const log = lines.join("");
    expect(log).toContain("AuthorizationService/IssueToken");
    for (const one of [wrong, secret, token.slice(-100)]) expect(log).not.toContain(one);
  });
});

describe("an error message", { timeout }, () => {
  it.each([
    ["a wrong secret", { ...grant, client_id: "nobody", client_secret: "W".repeat(43) }],
    ["a long secret", { ...grant, client_id: "nobody", client_secret: "W".repeat(2000) }],
    ["a repeated secret", `client_secret=${"W".repeat(43)}&client_secret=${"W".repeat(43)}`],
    ["a secret that cannot be decoded", `client_secret=${"W".repeat(43)}%zz`],
    ["bytes that are not UTF-8", `client_secret=${"W".repeat(43)}%ff`],
    ["a token of the wrong type", { ...grant, token: "W".repeat(43) }],
  ])("repeats no part of %s", async (_what, form) => {
    for (const path of ["/oauth/token", "/oauth/introspect", "/oauth/revoke"]) {
      const { status, headers, body } = await postForm(server, path, form, {});
      expect([400, 401]).toContain(status);
      expect(JSON.stringify([body, [...headers]])).not.toContain("WWW");
    }
  });

  it.each([
    ["scope", 'a" realm="evil\r\nset-cookie: a=b'],
    ["audience", "a\r\nset-cookie: a=b"],
    ["resource", 'https://a.example.com/"\r\nset-cookie: a=b'],
    ["grant_type", "a\r\nset-cookie: a=b"],
    ["client_id", "a\r\nset-cookie: a=b"],
  ])("puts a caller's %s in no header, and in one line of ASCII at most", async (parameter, value) => {
    const headers = parameter === "client_id" ? {} : basicOf(name);
    const answer = await postForm(server, "/oauth/token", { ...grant, [parameter]: value }, headers);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.headers.get("set-cookie")).toBeNull();
    expect(answer.headers.get("www-authenticate") ?? "").not.toContain("evil");
    expect(answer.body.error_description).toMatch(/^[ !#-[\]-~]+$/);
    expect(lines.join("")).not.toMatch(/^set-cookie/m);
  });
});

describe("an oversized form", { timeout }, () => {
  it.each([
    ["1,000,000 parameters", "a=1&".repeat(1_000_000)],
    ["percent-encoding of 3 MB", `grant_type=client_credentials&scope=${"%41".repeat(1_000_000)}`],
    ["5,000 scopes", `grant_type=client_credentials&scope=${"a+".repeat(5_000)}`],
    ["11 resources", `grant_type=client_credentials${"&resource=https://a.example.com".repeat(11)}`],
  ])("with %s is rejected", async (_what, form) => {
    const answer = await postForm(server, "/oauth/token", form, basicOf(name));
    expect([400, 413]).toContain(answer.status);
    expect(answer.body.error).toBe("invalid_request");
  });

  it("with 10,000 unknown parameters does not slow down others", async () => {
    const form = `${"a=1&".repeat(10_000)}grant_type=client_credentials`;
    const { status } = await postForm(server, "/oauth/token", form, basicOf(name));
    expect([200, 400]).toContain(status);
    expect((await requestToken(server, name)).status).toBe(200);
  });
});

it("a page of a different site is refused before anything is checked, and prompts for no password", async () => {
  for (const path of ["/oauth/token", "/oauth/introspect", "/oauth/revoke"]) {
    const answer = await postForm(server, path, grant, { origin: "https://evil.example.com" });
    expect(answer.status).toBe(403);
    expect(answer.headers.get("www-authenticate")).toBeNull();
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  }
});

it("an idempotency key gives nobody another caller's token, and returns no token twice", {
  timeout,
}, async () => {
  const other = await makeClient(server, { scopes: ["kms.read"] });
  const request = (client: string, password?: string) =>
    postForm(server, "/oauth/token", grant, { ...basicOf(client, password), "idempotency-key": "same" });
  const answers = [await request(name), await request(other), await request(name)];
  const claims = answers.map(({ body }) => claimsOf(body.access_token));
  expect(claims.map(({ sub }) => sub)).toEqual([name, other, name]);
  expect(new Set(claims.map(({ jti }) => jti)).size).toBe(3);
  expect((await request(name, "no")).status).toBe(401);
});

describe("a token in the wrong place", { timeout }, () => {
  it("cannot pass as an access token if it comes from a log-in, and vice versa", async () => {
    const ada = await server.makePerson();
    const [, payload = "", signature = ""] = ada.token.split(".");
    const { access_token: token } = (await requestToken(server, name)).body;
    const [, accessPayload = "", accessSignature = ""] = token.split(".");
    const [{ kid = "" } = {}] = await server.office.issuer.publicJwks();
    const head = (typ: string, alg = "ML-DSA-65") =>
      Buffer.from(JSON.stringify({ alg, typ, kid })).toString("base64url");
    const variants = [
      `${head("at+jwt")}.${payload}.${signature}`,
      `${head("JWT")}.${accessPayload}.${accessSignature}`,
      `${head("application/at+jwt")}.${accessPayload}.${accessSignature}`,
      `${head("at+jwt", "ML-DSA-44")}.${accessPayload}.${accessSignature}`,
      `${head("at+jwt", "none")}.${accessPayload}.`,
    ];
    for (const variant of variants) {
      expect(await useToken(server, variant)).toMatch(/^401 TOKEN_(SIGNATURE_INVALID|MALFORMED)$/);
      expect((await introspect(server, name, variant)).body).toEqual({ active: false });
    }
  });

  it("is not read from a URL or a body", async () => {
    const { access_token: token } = (await requestToken(server, name)).body;
    const response = await fetch(`${server.url}/api/kms/keys?access_token=${token}`);
    expect(response.status).toBe(401);
  });

  it("cannot be requested by GET, not even in the Connect protocol", async () => {
    const message = JSON.stringify({ token: "abc", client_id: name, client_secret: secret });
    for (const rpc of ["IssueToken", "IntrospectToken", "RevokeToken"]) {
      const target = `/oauth.AuthorizationService/${rpc}?connect=v1&encoding=json&message=${encodeURIComponent(message)}`;
      expect((await fetch(server.url + target)).status).toBe(405);
    }
  });

  it("is bound to its issuer: the server rejects it under a different URL", async () => {
    const other = await startAccessServer({
      atEnd: onTestFinished,
      database: ["--data-dir", server.dataDir],
      args: ["--issuer-url", "https://other.example.com"],
    });
    const { access_token: token } = (await requestToken(server, name)).body;
    expect(claimsOf(token).iss).toBe(issuerUrl);
    expect(await useToken(other, token)).toBe("401 TOKEN_MALFORMED");
    expect(await useToken(other, await issueTo(server.office, (await server.makePerson()).name))).toBe("200");
  });
});
