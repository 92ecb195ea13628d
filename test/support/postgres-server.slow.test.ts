import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { describePostgres } from "./postgres.ts";

const timeout = 180_000;
const harness = pathToFileURL(join(import.meta.dirname, "postgres-server.ts")).href;

describePostgres("startPostgres", () => {
  it("leaves nothing behind when its owner is killed", { timeout }, async () => {
    const program = `
      import { startPostgres } from ${JSON.stringify(harness)};
      console.log((await startPostgres()).url("postgres"));
    `;
    const owner = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void owner.kill("SIGKILL"));
    const { value: url } = await createInterface({ input: owner.stdout })[Symbol.asyncIterator]().next();
    const traces = await findTraces(url ?? "");
    expect(isThere(traces)).toEqual({ process: true, directory: true });
    owner.kill("SIGKILL");
    await expect.poll(() => isThere(traces), { timeout }).toEqual({ process: false, directory: false });
  });
});

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

interface Traces {
  readonly pid: number;
  readonly directory: string;
}

/** A server's processes and files on this machine, as the server reports them. */
async function findTraces(url: string): Promise<Traces> {
  const [row] = await query(
    url,
    `SELECT current_setting('data_directory') AS data,
       split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid`,
  );
  const { data, pid } = row as { data: string; pid: string };
  return { pid: Number(pid), directory: dirname(data) };
}

function isThere({ pid, directory }: Traces): { process: boolean; directory: boolean } {
  return { process: isAlive(pid), directory: existsSync(directory) };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
