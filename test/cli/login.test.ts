import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { isMissing } from "../interop/tools.ts";
import { password } from "../support/passwords.ts";
import { loginsFile, useGuardedServer } from "./guarded-server.ts";
import { launch, program, qsp, qspDone, type RunOptions, timeout } from "./qsp.ts";

const server = useGuardedServer();
const { place, loggedIn, tokenOf } = server;

/** A server that records what callers send. */
async function listen() {
  const authorizations: (string | undefined)[] = [];
  const handler = connectNodeAdapter({
    routes: ({ service }) => void service(KmsService, { listKeys: () => ({ status: "success" }) }),
  });
  const otherServer = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    handler(request, response);
  });
  otherServer.listen(0, "127.0.0.1");
  await once(otherServer, "listening");
  onTestFinished(() => void otherServer.close());
  const { port } = otherServer.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, authorizations };
}

describe("qsp login", { timeout }, () => {
  it("does not send the token of an earlier login, which may have expired", async () => {
    const here = await loggedIn();
    const logins = JSON.parse(readFileSync(loginsFile(here), "utf8"));
    logins[server.url].token = "dead";
    writeFileSync(loginsFile(here), JSON.stringify(logins));
    expect((await qsp(["kms", "list"], here)).code).toBe(3);
    await qspDone(["login", "ada"], { ...here, stdin: password });
    await qspDone(["kms", "list"], here);
  });

  it.skipIf(isMissing("script"))("does not show a password typed at a terminal", async () => {
    const here = place();
    const command = `"${process.execPath}" "${program}" login ada`;
    const { child, end } = launch("script", ["-qec", command, join(here.cwd, "typescript")], {
      ...here,
      stdin: null,
    });
    const { code, stdout } = await typed(child, end);
    expect(code).toBe(0);
    expect(stdout).toContain("Password for ada: ");
    expect(stdout).not.toContain(password);
    await qspDone(["kms", "list"], here);
  });

  /** Types the password when asked, with a typo that is corrected. */
  async function typed(child: ReturnType<typeof launch>["child"], end: ReturnType<typeof launch>["end"]) {
    await new Promise<void>((resolve) => {
      let shown = "";
      child.stdout?.on("data", (chunk) => {
        shown += chunk;
        if (shown.includes("Password for ada: ")) resolve();
      });
    });
    child.stdin?.end(`${password}x\u007f\r`);
    return end;
  }
});

describe("a token", { timeout }, () => {
  it("from a login is not sent to other servers", async () => {
    const here = await loggedIn();
    const otherServer = await listen();
    await qspDone(["kms", "list"], { ...here, url: otherServer.url });
    await qspDone(["kms", "list"], { ...here, url: otherServer.url, env: { QSP_TOKEN: "meant for it" } });
    expect(otherServer.authorizations).toEqual([undefined, "Bearer meant for it"]);
  });

  it("from a login is not sent once it has expired", async () => {
    const here = await loggedIn();
    const logins = JSON.parse(readFileSync(loginsFile(here), "utf8"));
    logins[server.url].expiresAt = "2020-01-31T12:00:00.000Z";
    writeFileSync(loginsFile(here), JSON.stringify(logins));
    expect(await qsp(["kms", "list"], here)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("log in first: qsp login USERNAME"),
    });
  });

  it("comes from --token-file or QSP_TOKEN before the stored login", async () => {
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
});
