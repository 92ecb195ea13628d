import { once } from "node:events";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { isMissing } from "../interop/tools.ts";
import { password } from "../support/passwords.ts";
import { loginsFile, useGuardedServer } from "./guarded-server.ts";
import { launch, program, qsp, qspDone, qspJson, type RunOptions, timeout } from "./qsp.ts";

const server = useGuardedServer();
const { place, loggedIn, tokenOf } = server;

/** A server that keeps what it is told of the caller. */
async function listen() {
  const authorizations: (string | undefined)[] = [];
  const handler = connectNodeAdapter({
    routes: ({ service }) => void service(KmsService, { listKeys: () => ({ status: "success" }) }),
  });
  const stranger = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    handler(request, response);
  });
  stranger.listen(0, "127.0.0.1");
  await once(stranger, "listening");
  onTestFinished(() => void stranger.close());
  const { port } = stranger.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, authorizations };
}

describe("qsp login", { timeout }, () => {
  it("is in the log of identities, by the user whom it is about", async () => {
    const here = await loggedIn();
    const [header = "", ...entries] = (await qspDone(["identity", "log", "ada"], here)).split("\n");
    expect(header).toMatch(/ SUBJECT +BY +ADDRESS /);
    expect(entries.find((line) => line.includes(" LOG_IN "))).toMatch(/ OK +ada +ada +127\.0\.0\.1/);
  });

  it("lets later calls in, with a token that is kept for its owner alone and printed nowhere", async () => {
    const here = place();
    expect(await qsp(["kms", "list"], here)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("log in first: qsp login USERNAME (UNAUTHENTICATED, TOKEN_MISSING)"),
    });
    const stdout = await qspDone(["login", "ada", "--json"], { ...here, stdin: `${password}\n` });
    expect(JSON.parse(stdout)).toMatchObject({ url: server.url, username: "ada" });
    expect(stdout).not.toContain(tokenOf(here));
    await qspDone(["kms", "list"], here);
    expect([
      statSync(loginsFile(here)).mode & 0o777,
      statSync(join(loginsFile(here), "..")).mode & 0o777,
    ]).toEqual([0o600, 0o700]);
  });

  it("refuses a wrong password, and keeps what was there", async () => {
    const here = await loggedIn();
    const before = tokenOf(here);
    expect(await qsp(["login", "ada"], { ...here, stdin: "wrong\n" })).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("LOGIN_FAILED"),
    });
    expect(tokenOf(here)).toBe(before);
  });

  it("asks without the token of an earlier login, which may be a dead one", async () => {
    const here = await loggedIn();
    const logins = JSON.parse(readFileSync(loginsFile(here), "utf8"));
    logins[server.url].token = "dead";
    writeFileSync(loginsFile(here), JSON.stringify(logins));
    expect((await qsp(["kms", "list"], here)).code).toBe(3);
    await qspDone(["login", "ada"], { ...here, stdin: password });
    await qspDone(["kms", "list"], here);
  });

  it.skipIf(isMissing("script"))("shows nothing of a password that is typed at a terminal", async () => {
    const here = place();
    const command = `"${process.execPath}" "${program}" login ada`;
    const { child, end } = launch("script", ["-qec", command, join(here.cwd, "typescript")], {
      ...here,
      stdin: null,
    });
    const { code, stdout } = await typed(child, end);
    expect(code).toBe(0);
    expect(stdout).toContain("Password of ada: ");
    expect(stdout).not.toContain(password);
    await qspDone(["kms", "list"], here);
  });

  /** Types the password once it is asked for, with a slip that is taken back. */
  async function typed(child: ReturnType<typeof launch>["child"], end: ReturnType<typeof launch>["end"]) {
    await new Promise<void>((resolve) => {
      let shown = "";
      child.stdout?.on("data", (chunk) => {
        shown += chunk;
        if (shown.includes("Password of ada: ")) resolve();
      });
    });
    child.stdin?.end(`${password}x\u007f\r`);
    return end;
  }
});

describe("a token", { timeout }, () => {
  it("of a login goes to no other server", async () => {
    const here = await loggedIn();
    const stranger = await listen();
    await qspDone(["kms", "list"], { ...here, url: stranger.url });
    await qspDone(["kms", "list"], { ...here, url: stranger.url, env: { QSP_TOKEN: "meant for it" } });
    expect(stranger.authorizations).toEqual([undefined, "Bearer meant for it"]);
  });

  it("of a login is not sent once it has expired", async () => {
    const here = await loggedIn();
    const logins = JSON.parse(readFileSync(loginsFile(here), "utf8"));
    logins[server.url].expiresAt = "2020-01-31T12:00:00.000Z";
    writeFileSync(loginsFile(here), JSON.stringify(logins));
    expect(await qsp(["kms", "list"], here)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("log in first: qsp login USERNAME"),
    });
  });

  it("comes from --token-file, or QSP_TOKEN, before that of a login", async () => {
    const token = tokenOf(await loggedIn());
    const here = place();
    await qspDone(["kms", "list", "--token-file", "token"], withToken(here, token));
    await qspDone(["kms", "list"], { ...here, env: { QSP_TOKEN: token } });
    const dead = { ...(await loggedIn()), env: { QSP_TOKEN: "dead" } };
    expect(await qsp(["kms", "list"], dead)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("TOKEN_"),
    });
  });

  function withToken(here: RunOptions, token: string): RunOptions {
    writeFileSync(join(here.cwd, "token"), `${token}\n`);
    return here;
  }

  it("is no flag", async () => {
    expect(await qsp(["kms", "list", "--token", "x"], place())).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--token is not an option"),
    });
  });

  it("is gone after qsp logout", async () => {
    const here = await loggedIn();
    await qspDone(["logout"], here);
    expect(readFileSync(loginsFile(here), "utf8")).toBe("{}\n");
    expect((await qsp(["kms", "list"], here)).code).toBe(3);
  });

  it("is not sent in clear to another machine, unless it is told to", async () => {
    const far = { ...place(), url: "http://192.0.2.1:8080", env: { QSP_TOKEN: "secret" } };
    expect(await qsp(["kms", "list"], far)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("https"),
    });
    expect(await qsp(["login", "ada"], { ...far, env: {}, stdin: password })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("https"),
    });
  });

  it("of a damaged file is not guessed", async () => {
    const here = await loggedIn();
    writeFileSync(loginsFile(here), "{");
    expect(await qsp(["kms", "list"], here)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(loginsFile(here)),
    });
  });
});

describe("while the server wants tokens", { timeout }, () => {
  it("says whose role does not do", async () => {
    const here = await loggedIn("bob");
    expect(await qsp(["call", "kms.KmsService/VerifyAuditLog"], here)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("(PERMISSION_DENIED, ROLE_MISSING)"),
    });
  });

  it("a device that authenticated sends with a token of its own", async () => {
    const here = await loggedIn();
    await qspDone(["device", "register"], here);
    rmSync(loginsFile(here));
    expect(await qsp(["device", "send", "21.5"], here)).toMatchObject({ code: 3 });
    await qspDone(["device", "authenticate"], here);
    expect(await qspJson(["device", "send", "21.6"], here)).toMatchObject({ verified: true });
    expect(await qspDone(["device", "stream"], { ...here, stdin: "21.7\n" })).toMatch(/is verified/);
  });

  it("health needs no token", async () => {
    expect((await qsp(["health"], place())).code).toBe(0);
  });
});

describe("a user with a grant", { timeout }, () => {
  it("finds it, and signs with the key even without GET_KEY, until it is revoked", async () => {
    const owner = await loggedIn("ada");
    const grantee = await loggedIn("bob");
    await qspDone(["kms", "create", "--name", "lent"], owner);
    const line = ["kms", "grant", "name/lent", "bob", "--operations", "SIGN", "--expires", "1d"];
    const { grantId } = (await qspJson(line, owner)).grant as { grantId: string };
    expect(await qspDone(["kms", "grants", "--received"], grantee)).toMatch(
      / user\/ada\/name\/lent +ada +bob /,
    );
    writeFileSync(join(grantee.cwd, "f"), "hello");
    expect(await qspDone(["sign", "f", "--key", "user/ada/name/lent"], grantee)).toContain("ML-DSA-65");
    await qspDone(["kms", "revoke", grantId], owner);
    expect(await qsp(["sign", "f", "--key", "user/ada/name/lent"], grantee)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("KEY_NOT_FOUND"),
    });
    const { auditLog } = await qspJson(["kms", "audit", "name/lent", "--user", "bob"], owner);
    expect(auditLog).toContainEqual(expect.objectContaining({ operation: "SIGN", outcome: "OK" }));
  });
});

describe("a grant to sign", { timeout }, () => {
  it("suffices for a signature", async () => {
    const [ada, bob] = [await loggedIn("ada"), await loggedIn("bob")];
    await qspDone(["kms", "create", "--name", "shared"], ada);
    await qspDone(["kms", "grant", "name/shared", "bob", "--operations", "SIGN"], ada);
    writeFileSync(join(bob.cwd, "file"), "hello");
    expect((await qsp(["sign", "file", "--key", "user/ada/name/shared"], bob)).code).toBe(0);
  });
});
