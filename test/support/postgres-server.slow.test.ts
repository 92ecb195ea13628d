import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { describePostgres, freshDatabaseUrl } from "./postgres.ts";
import { findPostgres, type PostgresOptions, type PostgresServer, startPostgres } from "./postgres-server.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

const timeout = 180_000;
const harness = pathToFileURL(join(import.meta.dirname, "postgres-server.ts")).href;

afterEach(() => vi.unstubAllEnvs());

describe("findPostgres", () => {
  it("takes the newest version of the PATH and of Debian's place for it", () => {
    const [old, newest, other] = ["9.6.1", "1000.1", "999devel"].map(installFake);
    vi.stubEnv("PATH", [old, newest, other, process.env.PATH].join(delimiter));
    expect(findPostgres()).toBe(newest);
  });

  it("takes nothing older than version 15", () => {
    const old = installFake("14.9");
    vi.stubEnv("PATH", [old, process.env.PATH].join(delimiter));
    expect(findPostgres()).not.toBe(old);
  });
});

describePostgres("startPostgres", () => {
  it("creates databases that are apart", { timeout }, async () => {
    const postgres = await startForTest({ durable: false });
    const [one, other] = await Promise.all([postgres.createDatabase(), postgres.createDatabase()]);
    await query(one, "CREATE TABLE notes (text text)");
    expect(await countTables(one)).toBe(1);
    expect(await countTables(other)).toBe(0);
  });

  it.each([
    { durable: undefined, fsync: "on" },
    { durable: true, fsync: "on" },
    { durable: false, fsync: "off" },
  ])("runs with fsync $fsync when durable is $durable", { timeout }, async ({ durable, fsync }) => {
    const postgres = await startForTest(durable === undefined ? {} : { durable });
    expect(await query(postgres.url("postgres"), "SELECT current_setting('fsync') AS fsync")).toEqual([
      { fsync },
    ]);
  });

  it.each(["fast", "immediate"] as const)(
    "keeps what is committed over a stop (%s)",
    { timeout },
    async (mode) => {
      const postgres = await startForTest();
      const url = await postgres.createDatabase();
      await query(url, "CREATE TABLE notes (text text)");
      await query(url, "INSERT INTO notes VALUES ('kept')");
      await postgres.stop(mode);
      await expect(query(url, "SELECT")).rejects.toThrow("ECONNREFUSED");
      await postgres.start();
      expect(await query(url, "SELECT text FROM notes")).toEqual([{ text: "kept" }]);
    },
  );

  it.each(["running", "stopped"])(
    "leaves nothing behind when closed while %s",
    { timeout },
    async (state) => {
      const postgres = await startForTest({ durable: false });
      const traces = await findTraces(postgres.url("postgres"));
      expect(isThere(traces)).toEqual({ process: true, directory: true });
      if (state === "stopped") await postgres.stop();
      await postgres.close();
      expect(isThere(traces)).toEqual({ process: false, directory: false });
    },
  );

  it("refuses to start what runs", { timeout }, async () => {
    const postgres = await startForTest({ durable: false });
    await expect(postgres.start()).rejects.toThrow("already");
    expect(await query(postgres.url("postgres"), "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

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

describePostgres("freshDatabaseUrl", () => {
  it("gives a database of its own to everyone who asks", { timeout }, async () => {
    const urls = await Promise.all(Array.from({ length: 4 }, () => freshDatabaseUrl()));
    expect(new Set(urls).size).toBe(4);
    expect(await Promise.all(urls.map(countTables))).toEqual([0, 0, 0, 0]);
  });
});

/** A directory with programs that say they are of this version. */
function installFake(version: string): string {
  const directory = makeTemporaryDirectory();
  for (const program of ["initdb", "postgres"]) {
    const script = `#!/bin/sh\necho "${program} (PostgreSQL) ${version} (Fake)"\n`;
    writeFileSync(join(directory, program), script, { mode: 0o755 });
  }
  return directory;
}

async function startForTest(options?: PostgresOptions): Promise<PostgresServer> {
  const postgres = await startPostgres(options);
  onTestFinished(() => postgres.close());
  return postgres;
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function countTables(url: string): Promise<number> {
  return (await query(url, "SELECT FROM pg_tables WHERE schemaname = 'public'")).length;
}

interface Traces {
  readonly pid: number;
  readonly directory: string;
}

/** What a server has on this machine, as it says itself. */
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
