/** Identity log entries about clients and their tokens. */
import { inspect } from "node:util";
import { expect, it, vi } from "vitest";
import { describeAccess } from "../../../test/access/access-server.ts";
import { logOf, readUntil, readUntilRefused } from "../../../test/access/read-identity-log.ts";
import { issuerUrl } from "../../../test/support/clients.ts";
import {
  basicOf,
  claimsOf,
  exchange,
  introspect,
  makeClient,
  postForm,
  requestToken,
  revoke,
  useToken,
} from "./tools.ts";

vi.mock("node:crypto", async (load) =>
  (await import("../../../test/support/cheap-scrypt.ts")).cheapen(await load()),
);

describeAccess("the identity log", (shared) => {
  it("records which token a client got, for whom and for what, and why it got none", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes: ["kms.read"], mayExchange: true });
    const ada = await server.makePerson();
    const { body } = await exchange(server, name, ada.token);
    await exchange(server, name, ada.token, { scope: "kms.sign" });
    const entries = await readUntilRefused(logOf(await server.makePerson("auditor")), name);
    const { jti } = claimsOf(body.access_token);
    const rights = /^role=user, scopes=kms.read, exchange=true, generation=\S{36}$/;
    expect(entries.map(({ operation, details }) => [operation, details])).toEqual([
      ["CREATE_CLIENT", expect.stringMatching(rights)],
      ["ISSUE_TOKEN", `token=${jti}, for=${ada.name}, scopes=kms.read, audiences=${issuerUrl}`],
      ["ISSUE_TOKEN", "reason=SCOPE_INVALID"],
    ]);
  });

  it("refuses and records attempts to revoke, read or exchange another client's token", async () => {
    const server = await shared();
    const victim = await makeClient(server, { scopes: ["kms.read"] });
    const eve = await makeClient(server, { scopes: ["kms.read"], mayExchange: true });
    const token = (await requestToken(server, victim)).body.access_token;
    const refused = { status: 400, body: { error: "unauthorized_client" } };
    const tokenName = `token=${claimsOf(token).jti}`;
    const ada = await server.makePerson();
    expect(await revoke(server, eve, token)).toMatchObject(refused);
    for (const attempt of [introspect, exchange]) await attempt(server, eve, token);
    expect(await revoke(server, eve, ada.token)).toMatchObject(refused);
    for (const one of [token, ada.token]) expect(await useToken(server, one)).toBe("200");
    const log = logOf(await server.makePerson("auditor"));
    const entries = await readUntil(log, { subject: eve, outcome: "REFUSED" }, 4);
    expect(entries.map(({ operation, user, details }) => [operation, user, details])).toEqual([
      ["REVOKE_TOKEN", eve, `reason=CLIENT_UNAUTHORIZED, ${tokenName}`],
      ["INTROSPECT_TOKEN", eve, `reason=CLIENT_UNAUTHORIZED, ${tokenName}`],
      ["ISSUE_TOKEN", eve, `reason=SUBJECT_TOKEN_INVALID, ${tokenName}`],
      ["REVOKE_TOKEN", eve, "reason=CLIENT_UNAUTHORIZED"],
    ]);
    expect(entries[0]).toMatchObject({ clientAddress: "127.0.0.1" });
    expect(inspect(entries)).not.toContain(token.slice(0, 40));
  });

  it.each([
    ["/oauth/token", "ISSUE_TOKEN"],
    ["/oauth/introspect", "INTROSPECT_TOKEN"],
    ["/oauth/revoke", "REVOKE_TOKEN"],
  ])("records that a client's secret was wrong, and for which operation: %s", async (path, operation) => {
    const server = await shared();
    const name = await makeClient(server, {}, `guessed${path.replaceAll("/", "-")}`);
    const form = { grant_type: "client_credentials", token: "a.b.c" };
    await postForm(server, path, form, basicOf(name, "A".repeat(43)));
    const entries = await readUntilRefused(logOf(await server.makePerson("auditor")), name);
    expect(entries.slice(1).map(({ operation, details }) => [operation, details])).toEqual([
      [operation, "reason=CLIENT_INVALID"],
    ]);
  });

  it("has no entry for tokens of other servers, which are inactive, or for tokens that the client may see", async () => {
    const server = await shared();
    const [one, other] = [await makeClient(server), await makeClient(server)];
    const token = (await requestToken(server, one)).body.access_token;
    const forged = `${token.slice(0, -8)}AAAAAAAA`;
    for (const unreadable of ["abc", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", forged]) {
      expect((await revoke(server, other, unreadable)).status).toBe(200);
      const { status, body } = await introspect(server, other, unreadable);
      expect([status, body]).toEqual([200, { active: false }]);
    }
    await introspect(server, one, token);
    await revoke(server, other, token);
    const entries = await readUntilRefused(logOf(await server.makePerson("auditor")), other);
    expect(entries.map(({ operation }) => operation)).toEqual(["CREATE_CLIENT", "REVOKE_TOKEN"]);
  });
});
