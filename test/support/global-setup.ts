/**
 * Runs before vitest: compiles the program, creates the directory for all temporary files, and prepares one
 * PostgreSQL server from which test files request databases.
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
    /** Where test files create temporary directories. It is deleted with all its content after the run. */
    temporaryDirectory: string;
    /** The folder of the compiled program. */
    compiledProgram: string;
    /**
     * URL where a POST to `/<process id>` creates a database for that process and returns its URL; absent if
     * PostgreSQL is not installed.
     */
    postgresDesk?: string;
  }
}

const compiler = join(import.meta.dirname, "../../src/setup/compile.ts");

/** Drops the databases of processes that have ended: each takes 10 MB of memory. */
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

/** Prepares the run, and returns the function that cleans up. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!isFresh()) execFileSync(process.execPath, [compiler], { stdio: "inherit" });
  project.provide(
    "compiledProgram",
    join(compiledFolder, JSON.parse(readFileSync(inputsPath, "utf8")).build),
  );
  const directory = mkdtempSync(join(quickDirectory, "qsp-test-"));
  // Some tested programs run as a different user and pass through this directory.
  chmodSync(directory, 0o711);
  project.provide("temporaryDirectory", directory);
  const closeDesk = findPostgres() === undefined ? undefined : await openDesk(project);
  return async () => {
    await closeDesk?.();
    rmSync(directory, { recursive: true, force: true });
  };
}

/**
 * Opens an HTTP endpoint in this process that hands out databases. The PostgreSQL server starts on the first request,
 * and only its caller waits: if it started eagerly, a run of a few quick tests would wait until it can be stopped
 * again. Returns the cleanup function.
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
      dropUnused(postgres, given).catch(() => {}); // They then stay until the server stops.
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
    const postgres = await starting?.catch(() => undefined); // Reported to the caller that requested it.
    await postgres?.close();
  };
}
