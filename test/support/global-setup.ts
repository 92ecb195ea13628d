/**
 * Before a run of vitest: compiles the program, makes the directory of all temporary files, and opens one PostgreSQL
 * server, which test files ask for databases.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { compiledFolder, inputsPath, isFresh } from "../../src/setup/freshness.mjs";
import { findPostgres, type PostgresServer, startPostgres } from "./postgres-server.ts";
import { quickDirectory } from "./quick-directory.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where test files make their temporary directories. It goes with all that is left in it after the run. */
    temporaryDirectory: string;
    /** The folder of the compiled program. */
    compiledProgram: string;
    /**
     * Where a POST to `/<process id>` creates a database for that process and answers with its URL; absent when
     * PostgreSQL is not installed.
     */
    postgresDesk?: string;
  }
}

const compiler = join(import.meta.dirname, "../../src/setup/compile.ts");

/** Drops the databases of processes that have ended, which would fill the memory: each takes 10 MB. */
async function dropUnused(postgres: PostgresServer, given: Map<number, string[]>): Promise<void> {
  for (const [asker, urls] of given) {
    if (isAlive(asker)) continue;
    given.delete(asker);
    for (const url of urls) await postgres.dropDatabase(url);
  }
}

function isAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

/** Returns what ends all that the run has begun. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!isFresh()) execFileSync(process.execPath, [compiler], { stdio: "inherit" });
  project.provide(
    "compiledProgram",
    join(compiledFolder, JSON.parse(readFileSync(inputsPath, "utf8")).build),
  );
  const directory = mkdtempSync(join(quickDirectory, "qsp-test-"));
  // Some programs of tests run as another user, and pass through here.
  chmodSync(directory, 0o711);
  project.provide("temporaryDirectory", directory);
  const closeDesk = findPostgres() === undefined ? undefined : await openDesk(project);
  return async () => {
    await closeDesk?.();
    rmSync(directory, { recursive: true, force: true });
  };
}

/**
 * Opens a desk in this process that gives out databases. The server starts when the first file asks there, and only
 * who asks waits: started at once, it would make a run of a few quick tests wait until it can be stopped again. Returns
 * what ends it all.
 */
async function openDesk(project: TestProject): Promise<() => Promise<void>> {
  let starting: Promise<PostgresServer> | undefined;
  const given = new Map<number, string[]>();
  const desk = createServer(async (request, response) => {
    try {
      starting ??= startPostgres({ durable: false });
      const postgres = await starting;
      const asker = Number(request.url?.slice(1));
      const url = await postgres.createDatabase();
      given.set(asker, [...(given.get(asker) ?? []), url]);
      response.end(url);
      dropUnused(postgres, given).catch(() => {}); // Then they stay until the server ends.
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  desk.listen(0, "127.0.0.1");
  await once(desk, "listening");
  const { port } = desk.address() as AddressInfo;
  project.provide("postgresDesk", `http://127.0.0.1:${port}`);

  return async () => {
    desk.close();
    desk.closeAllConnections();
    const postgres = await starting?.catch(() => undefined); // Who asked was told.
    await postgres?.close();
  };
}
