import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startServer } from "./support/start-server.ts";
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
  const server = await startServer({
    dataDir: makeTemporaryDirectory(),
    how: {
      command: [process.execPath, join(import.meta.dirname, "uncaught-program.ts")],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    },
  });
  onTestFinished(() => void server.stop("SIGKILL"));
  return server;
}

/** The logged errors that nobody caught. */
function listUncaught(log: string): Line[] {
  return log
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg.includes("was not caught"));
}

async function countUncaught(url: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return /^qsp_uncaught_errors_total (\d+)$/m.exec(text)?.[1];
}

describe("an uncaught error", () => {
  it("does not end the server if it belongs to a connection, and is logged and counted", async () => {
    const { process: child, url, stop } = await start();
    expect(await countUncaught(url)).toBe("0");
    child.send("a connection error");
    child.send("a connection error");
    await expect.poll(() => countUncaught(url)).toBe("2");
    const { code, stderr } = await stop();
    expect(code).toBe(0);
    expect(listUncaught(stderr)).toMatchObject([
      { level: 50, origin: "unhandledRejection", err: { stack: expect.stringContaining("misuseResponse") } },
      { level: 50 },
    ]);
  });

  it.each(["a bug", "an error on an outgoing socket"])(
    "ends the server with exit code 70 after its calls have ended if it is %s",
    async (kind) => {
      const { process: child, url, exit } = await start();
      const watch = await fetch(`${url}/api/blockchain/chain/watch`);
      child.send(kind);
      expect(await watch.text()).toContain("SHUTTING_DOWN");
      const { code, stderr } = await exit;
      expect(code).toBe(70);
      expect(listUncaught(stderr)).toMatchObject([{ level: 60, origin: "uncaughtException" }]);
    },
  );

  it("does not restart the shutdown", async () => {
    const { process: child, exit } = await start();
    child.send("a bug");
    child.send("a bug");
    child.send("a connection error");
    const { code, stderr } = await exit;
    expect(code).toBe(70);
    expect(listUncaught(stderr).map(({ level }) => level)).toEqual([60, 60, 50]);
  });
});
