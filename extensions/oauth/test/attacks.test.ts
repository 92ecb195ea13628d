/** Hostile callers of the authorization server. */
import { pino } from "pino";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { signJwt } from "../../../src/crypto/jwt.ts";
import {
  type AccessServer,
  issueTo,
  startAccessServer,
  timeout,
} from "../../../test/access/access-server.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { issuerUrl, secret } from "../../../test/support/clients.ts";
import { hashCheaply, password } from "../../../test/support/passwords.ts";
import {
  basicOf,
  claimsOf,
  introspect,
  makeClient,
  postForm,
  requestToken,
  revoke,
  useToken,
} from "./tools.ts";

const grant = { grant_type: "client_credentials" };
const lines: string[] = [];
const atEnd = endAfterAll();
let server: AccessServer;
let name: string;

beforeAll(async () => {
  const logger = pino({ level: "trace" }, { write: (line) => void lines.push(line) });
  const args = ["--max-failed-logins", "3"];
  server = await startAccessServer({ atEnd, logger, args });
  name = await makeClient(server, { scopes: ["kms.read"] });
}, timeout);

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
  it.each(["", "sha256$", "none", "scrypt$1$1$1$AAAA$AAAA"])(
    "never matches the stored hash %j",
    async (secretHash) => {
      const other = await makeClient(server, { secretHash });
      for (const given of [secret, "A".repeat(43), secretHash])
        expect((await postForm(server, "/oauth/token", grant, basicOf(other, given))).status).toBe(401);
    },
  );

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

describe("a page of a different site", { timeout }, () => {
  it.each([
    ["that posts a form", { origin: "https://evil.example.com" }],
    ["in a browser that sends Sec-Fetch-Site", { "sec-fetch-site": "cross-site", origin: "null" }],
    ["on the same site", { "sec-fetch-site": "same-site" }],
  ])("%s is refused before anything is checked, and prompts for no password", async (_what, headers) => {
    for (const path of ["/oauth/token", "/oauth/introspect", "/oauth/revoke"]) {
      const answer = await postForm(server, path, grant, headers as unknown as Record<string, string>);
      expect(answer.status).toBe(403);
      expect(answer.headers.get("www-authenticate")).toBeNull();
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
  });
});

describe("an idempotency key", { timeout }, () => {
  it("gives nobody another caller's token, and returns no token twice", async () => {
    const other = await makeClient(server, { scopes: ["kms.read"] });
    const request = (client: string, password?: string) =>
      postForm(server, "/oauth/token", grant, { ...basicOf(client, password), "idempotency-key": "same" });
    const answers = [await request(name), await request(other), await request(name)];
    const claims = answers.map(({ body }) => claimsOf(body.access_token));
    expect(claims.map(({ sub }) => sub)).toEqual([name, other, name]);
    expect(new Set(claims.map(({ jti }) => jti)).size).toBe(3);
    expect((await request(name, "no")).status).toBe(401);
  });
});

describe("a token in the wrong place", { timeout }, () => {
  /** Signs tokens that the issuer would never sign. */
  async function forge(algorithm: "ML-DSA-65" | "ML-DSA-44", payload: object): Promise<string> {
    const { provider, issuer } = server.office;
    const { secretKey } = await provider.generateKeyPair(algorithm);
    const [{ kid = "" } = {}] = await issuer.publicJwks();
    return signJwt(provider, secretKey, { keyId: kid, type: "at+jwt", payload: payload as never });
  }

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

  it("is rejected if a key of a different algorithm signed it under the issuer's kid", async () => {
    const claims = { ...claimsOf((await requestToken(server, name)).body.access_token) };
    for (const algorithm of ["ML-DSA-65", "ML-DSA-44"] as const)
      expect(await useToken(server, await forge(algorithm, claims))).toMatch(/^401 /);
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
