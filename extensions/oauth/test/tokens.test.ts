/** Who can see a token, how it ends, and what it allows: RFC 7662, 7009, 9068 and 6750. */
import { expect, it, onTestFinished } from "vitest";
import {
  type AccessServer,
  describeAccess,
  makeDatabase,
  startAccessServer,
} from "../../../test/access/access-server.ts";
import { runCommand } from "../../../test/cli/operator/command-line.ts";
import { issuerUrl } from "../../../test/support/clients.ts";
import { refusal } from "../../../test/support/refusal.ts";
import {
  basicOf,
  claimsOf,
  exchange,
  headerOf,
  introspect,
  makeClient,
  postForm,
  requestToken,
  revoke,
  useToken,
} from "./tools.ts";

const api = "https://api.example.com";
const scopes = ["kms.read", "kms.sign", "kms.admin"];
const inactive = { active: false };

async function tokenOf(server: AccessServer, name: string, form = {}): Promise<string> {
  const { status, body } = await requestToken(server, name, form);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.access_token;
}

describeAccess("an access token", (shared) => {
  const startTwo = async (args: readonly string[] = []): Promise<[AccessServer, AccessServer, string[]]> => {
    const database = await makeDatabase(onTestFinished);
    const start = () => startAccessServer({ atEnd: onTestFinished, database, args });
    return [await start(), await start(), database];
  };

  it("is visible to its client and its audience, and to nobody else", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes, audiences: [api] });
    const audience = await makeClient(server, { resources: [api] });
    const outsider = await makeClient(server, { resources: [`${api}/`] });
    const token = await tokenOf(server, name, { resource: api });
    const { exp, iat, jti } = claimsOf(token);
    const own = { active: true, client_id: name, sub: name, role: "user", scope: scopes.join(" ") };
    const known = { ...own, token_type: "Bearer", aud: [api], iss: issuerUrl, exp, iat, jti };
    for (const one of [name, audience]) {
      const { status, headers, body } = await introspect(server, one, token);
      expect([status, headers.get("cache-control"), body]).toEqual([200, "no-store", known]);
    }
    expect((await introspect(server, outsider, token)).body).toEqual(inactive);
  });

  it("differs from a log-in token, for which introspection returns user and role", async () => {
    const server = await shared();
    const name = await makeClient(server);
    const eve = await server.makePerson("auditor");
    const { body } = await introspect(server, name, eve.token);
    expect(body).toMatchObject({ active: true, sub: eve.name, role: "auditor" });
    expect(body).not.toHaveProperty("client_id");
    await server.office.users.remove(eve.name);
    expect((await introspect(server, name, eve.token)).body).toEqual(inactive);
  });

  it("ends on every server when its client revokes it, and a second revocation changes nothing", async () => {
    const [one, two] = await startTwo();
    const name = await makeClient(one, { scopes });
    const [token, other] = [await tokenOf(one, name), await tokenOf(one, name)];
    expect(await useToken(two, token)).toBe("200");
    for (let i = 0; i < 2; i += 1) {
      const { status, body } = await revoke(one, name, token);
      expect([status, body]).toEqual([200, {}]);
    }
    for (const server of [one, two]) {
      expect(await useToken(server, token)).toBe("401 TOKEN_REVOKED");
      expect((await introspect(server, name, token)).body).toEqual(inactive);
      expect(await useToken(server, other)).toBe("200");
    }
  });

  it("from an exchange ends with the user, the user's password or the client", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes, mayExchange: true });
    const { users, clients } = server.office;
    const exchanged = async () => {
      const { name: user, token } = await server.makePerson();
      return { user, token: (await exchange(server, name, token)).body.access_token };
    };
    const [removed, changed, spared] = [await exchanged(), await exchanged(), await exchanged()];
    await users.remove(removed.user);
    await users.setPassword(changed.user, "none");
    const use = () => Promise.all([removed, changed, spared].map(({ token }) => useToken(server, token)));
    expect(await use()).toEqual(["401 TOKEN_REVOKED", "401 TOKEN_REVOKED", "200"]);
    await clients.remove(name);
    expect(await use()).toEqual(Array(3).fill("401 TOKEN_REVOKED"));
  });

  it.each(["removed", "given a new secret"])(
    "from two exchanges ends when the first client is %s",
    async (change) => {
      const server = await shared();
      const make = () => makeClient(server, { scopes, mayExchange: true });
      const [first, second] = [await make(), await make()];
      const { body } = await exchange(server, first, (await server.makePerson()).token);
      const { body: further } = await exchange(server, second, body.access_token);
      expect(await useToken(server, further.access_token)).toBe("200");
      if (change === "removed") await server.office.clients.remove(first);
      else await server.office.clients.setSecret(first, "sha256$x");
      expect(await useToken(server, further.access_token)).toBe("401 TOKEN_REVOKED");
      expect((await exchange(server, second, further.access_token)).status).toBe(400);
      expect((await introspect(server, second, further.access_token)).body).toEqual(inactive);
    },
  );

  it("ends a stream when it is revoked", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes: ["blockchain.read"] });
    const token = await tokenOf(server, name);
    const stream = server.connect(`Bearer ${token}`).chain.watchBlocks({})[Symbol.asyncIterator]();
    await stream.next();
    const end = refusal(Array.fromAsync({ [Symbol.asyncIterator]: () => stream }));
    await revoke(server, name, token);
    expect(await end).toEqual({ code: "Unauthenticated", reason: "TOKEN_REVOKED" });
  });

  it("reaches keys granted to the client by its name", async () => {
    const server = await shared();
    const [ada, name] = [await server.makePerson(), await makeClient(server, { scopes })];
    const { kms } = server.connect(`Bearer ${await tokenOf(server, name)}`);
    const keyId = (await ada.kms.createKey({ algorithm: "ML-DSA-44" })).result?.keyId ?? "";
    const data = new Uint8Array(1);
    expect((await refusal(kms.sign({ keyId, data }))).reason).toBe("KEY_NOT_FOUND");
    await ada.kms.createGrant({ keyId, grantee: name, operations: ["SIGN"] });
    expect((await kms.sign({ keyId, data })).result?.keyId).toBe(keyId);
  });

  it("creates records that a later client with the same name cannot see", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes });
    const token = await tokenOf(server, name);
    const first = server.connect(`Bearer ${token}`);
    const keyId = (await first.kms.createKey({ algorithm: "ML-DSA-44" })).result?.keyId ?? "";
    await server.office.clients.remove(name);
    await makeClient(server, { scopes }, name);
    const second = server.connect(`Bearer ${await tokenOf(server, name)}`);
    expect((await refusal(second.kms.getKey({ keyId }))).reason).toBe("KEY_NOT_FOUND");
    expect((await second.kms.listKeys({})).keys).toEqual([]);
    expect(await useToken(server, token)).toBe("401 TOKEN_REVOKED");
  });

  it("has either a client or a user as subject, because both share a namespace", async () => {
    const { office, makePerson } = await shared();
    const ada = await makePerson();
    const client = await makeClient(await shared());
    const { secretHash = "", ...rest } = (await office.clients.find(client)) ?? {};
    const twin = { ...rest, secretHash, name: ada.name } as never;
    expect(await office.clients.add(twin, new Date())).toBe(false);
    expect(await office.users.add({ name: client, role: "user", passwordHash: "" }, new Date())).toBe(false);
  });

  it.each(["ML-DSA-65", "ML-DSA-44"])(
    "of %s survives a restart, and a rotation that does not revoke",
    async (algorithm) => {
      const args = ["--access-token-algorithm", algorithm];
      const [one, two, database] = await startTwo(args);
      const name = await makeClient(one, { scopes });
      const token = await tokenOf(one, name);
      await one.close();
      expect(await useToken(two, token)).toBe("200");
      const rotate = (...words: string[]) =>
        runCommand({ settings: database }, ["issuer", "rotate", ...words]);
      expect((await rotate()).code).toBe(0);
      const next = await tokenOf(two, name);
      expect(headerOf(next)).toMatchObject({ alg: algorithm });
      expect(headerOf(next).kid).not.toBe(headerOf(token).kid);
      expect([await useToken(two, token), await useToken(two, next)]).toEqual(["200", "200"]);
      expect((await rotate("revoke")).code).toBe(0);
      await expect.poll(() => useToken(two, next)).toBe("401 TOKEN_KEY_UNKNOWN");
      expect(await useToken(two, await tokenOf(two, name))).toBe("200");
    },
  );

  it("is checked by pqc.TokenService too, which only reports on tokens for this server", async () => {
    const server = await shared();
    const { tokens } = server.connect();
    const name = await makeClient(server, { scopes, audiences: [api] });
    const token = await tokenOf(server, name);
    const { use, ...answer } = await tokens.verifyToken({ token });
    expect(answer).toMatchObject({ valid: true, subject: name, roles: ["user"] });
    expect(use).toBeUndefined();
    const other = await tokenOf(server, name, { resource: api });
    expect(await tokens.verifyToken({ token: other })).toMatchObject({ valid: false });
    await revoke(server, name, token);
    const reason = expect.stringMatching(/revoked/);
    expect(await tokens.verifyToken({ token })).toMatchObject({ valid: false, reason });
  });

  it("reads /metrics with the scope metrics.read and the auditor role", async () => {
    const args = ["--metrics", "token"];
    const database = await makeDatabase(onTestFinished);
    const server = await startAccessServer({ atEnd: onTestFinished, database, args });
    const auditor = await makeClient(server, { role: "auditor", scopes: ["metrics.read", "kms.read"] });
    const user = await makeClient(server, { scopes: ["metrics.read"] });
    const read = async (name: string, scope: string) => {
      const authorization = `Bearer ${await tokenOf(server, name, { scope })}`;
      return (await fetch(`${server.url}/metrics`, { headers: { authorization } })).status;
    };
    expect(await read(auditor, "metrics.read")).toBe(200);
    expect(await read(auditor, "kms.read")).toBe(403);
    expect(await read(user, "metrics.read")).toBe(403);
  });

  it("is issued by an open server too, where a log-in token cannot pass as a client", async () => {
    const database = await makeDatabase(onTestFinished);
    const server = await startAccessServer({ atEnd: onTestFinished, database, args: ["--auth", "open"] });
    const name = await makeClient(server, { scopes: [...scopes, "pqc.use"], mayExchange: true });
    const other = await makeClient(server, { scopes, role: "admin" });
    const token = await tokenOf(server, name, { scope: "pqc.use" });
    expect(await useToken(server, token, "GET /api/secure")).toBe("200");
    const grant = { grant_type: "client_credentials" };
    expect((await postForm(server, "/oauth/token", grant, basicOf(name, "no"))).status).toBe(401);
    const { tokens } = server.connect();
    const logIn = async (username: string) => (await tokens.issueToken({ username })).token;
    expect((await exchange(server, name, await logIn("ada"))).status).toBe(200);
    for (const username of [name, other])
      expect((await exchange(server, name, await logIn(username))).body.error).toBe("invalid_request");
  });
});
