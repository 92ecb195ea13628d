import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { inheritedEnvironment } from "../support/environment.ts";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

it.skipIf(!existsSync("/dev/full"))("a server keeps running when the disk of its log is full", async () => {
  const full = openSync("/dev/full", "w");
  const flags = ["--port", "0", "--data-dir", makeTemporaryDirectory(), "--log-level", "debug"];
  const child = spawn(process.execPath, [main, "serve", ...flags], {
    env: inheritedEnvironment(),
    stdio: ["ignore", "pipe", full],
  });
  closeSync(full);
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  let text = "";
  child.stdout?.on("data", (chunk) => {
    text += chunk;
  });
  await Promise.race([
    expect.poll(() => text).toMatch(/ready on http/),
    exited.then(([code]) => expect.fail(`the server ended with ${code}`)),
  ]);
  const [, url] = /ready on (http\S+)/.exec(text) ?? [];
  // Each call writes a line.
  for (let calls = 0; calls < 3; calls += 1) expect((await fetch(`${url}/api/hello`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});
