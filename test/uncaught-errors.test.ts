import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { inheritedEnvironment } from "./support/environment.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

/** A log line. */
interface Line {
  readonly level: number;
  readonly msg: string;
  readonly origin?: string;
  readonly err?: { readonly stack: string };
}

/** The real server in a process that raises errors when the test requests it. */
async function start() {
  const args = ["serve", "--port", "0", "--data-dir", makeTemporaryDirectory()];
  const child: ChildProcess = fork(join(import.meta.dirname, "uncaught-program.ts"), args, {
    execPath: process.execPath,
    execArgv: [],
    env: inheritedEnvironment(),
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { out: "", log: "" };
  child.stderr?.on("data", (chunk) => {
    output.log += chunk;
  });
  const url = await new Promise<string>((resolve) => {
    child.stdout?.on("data", (chunk) => {
      output.out += chunk;
      const found = /ready on (http:\S+)\n/.exec(output.out)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  const lines = (): Line[] =>
    output.log
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line));
  const uncaught = (): Line[] => lines().filter(({ msg }) => msg.includes("was not caught"));
  return { child, url, uncaught, exit: once(child, "close") };
}

async function countUncaught(url: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return /^qsp_uncaught_errors_total (\d+)$/m.exec(text)?.[1];
}

describe("an uncaught error", () => {
  it("does not end the server if it belongs to a connection, and is logged and counted", async () => {
    const { child, url, uncaught, exit } = await start();
    expect(await countUncaught(url)).toBe("0");
    child.send("a connection error");
    child.send("a connection error");
    await expect.poll(() => countUncaught(url)).toBe("2");
    expect(uncaught()).toMatchObject([
      { level: 50, origin: "unhandledRejection", err: { stack: expect.stringContaining("misuseResponse") } },
      { level: 50 },
    ]);
    child.kill("SIGTERM");
    expect(await exit).toEqual([0, null]);
  });

  it.each(["a bug", "an error on an outgoing socket"])(
    "ends the server with exit code 70 after its calls have ended if it is %s",
    async (kind) => {
      const { child, url, uncaught, exit } = await start();
      const watch = await fetch(`${url}/api/blockchain/chain/watch`);
      child.send(kind);
      expect(await watch.text()).toContain("SHUTTING_DOWN");
      expect(await exit).toEqual([70, null]);
      expect(uncaught()).toMatchObject([{ level: 60, origin: "uncaughtException" }]);
    },
  );

  it("does not restart the shutdown", async () => {
    const { child, uncaught, exit } = await start();
    child.send("a bug");
    child.send("a bug");
    child.send("a connection error");
    expect(await exit).toEqual([70, null]);
    expect(uncaught().map(({ level }) => level)).toEqual([60, 60, 50]);
  });
});
