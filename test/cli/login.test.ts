import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http2";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { useGuardedServer } from "./guarded-server.ts";
import { listen, qsp, qspDone, timeout } from "./qsp.ts";

const { place, loggedIn } = useGuardedServer();

it("a token from a login is not sent to other servers", async () => {
  const authorizations: (string | undefined)[] = [];
  const handler = connectNodeAdapter({
    routes: ({ service }) => void service(KmsService, { listKeys: () => ({ status: "success" }) }),
  });
  const port = await listen(
    createServer((request, response) => {
      authorizations.push(request.headers.authorization);
      handler(request, response);
    }),
  );
  const elsewhere = { ...(await loggedIn()), url: `http://127.0.0.1:${port}` };
  await qspDone(["kms", "list"], elsewhere);
  await qspDone(["kms", "list"], { ...elsewhere, env: { QSP_TOKEN: "meant-for-it" } });
  expect(authorizations).toEqual([undefined, "Bearer meant-for-it"]);
});

it.each(["first-secret\nsecond", "sécret", "secret€"])(
  "a token that is not one line is not quoted",
  async (QSP_TOKEN) => {
    expect(await qsp(["kms", "list"], { ...place(), env: { QSP_TOKEN } })).toEqual({
      code: 2,
      stdout: "",
      stderr: "qsp: QSP_TOKEN does not contain a token on one line\n",
    });
  },
);

it("programs that log in at the same time keep all tokens", { timeout }, async () => {
  const state = makeTemporaryDirectory();
  const logins = JSON.stringify(new URL("../../src/cli/connection/logins.ts", import.meta.url).href);
  const keep = `
    const { keepLogin } = await import(${logins});
    process.stdout.write("ready");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    for (let i = 0; i < 50; i += 1)
      keepLogin(\`http://\${process.pid}:\${i}\`, { token: "t", username: "ada", expiresAt: "2100-01-01T00:00:00Z" });
    process.exit();`;
  const programs = ["first", "second"].map(() =>
    spawn(process.execPath, ["--input-type=module", "-e", keep], {
      env: { ...process.env, XDG_STATE_HOME: state },
      stdio: ["pipe", "pipe", "inherit"],
    }),
  );
  await Promise.all(programs.map(({ stdout }) => once(stdout, "data")));
  const ends = programs.map((program) => once(program, "close"));
  for (const { stdin } of programs) stdin.end("go");
  expect((await Promise.all(ends)).map(([code]) => code)).toEqual([0, 0]);
  const kept = JSON.parse(readFileSync(join(state, "qsp", "logins.json"), "utf8"));
  expect(Object.keys(kept)).toHaveLength(100);
});
