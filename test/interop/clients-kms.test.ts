import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describePostgres, freshDatabaseUrl } from "../postgres/shared.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import { type Driver, drivers } from "./drivers.ts";
import { createForeignClient } from "./kms-client.ts";
import { tellStory } from "./kms-story.ts";
import { type RunningServer, startServer } from "./start-server.ts";
import { isMissing } from "./tools.ts";

const timeout = 60_000;

/** Of those that use two servers: REST, Connect and gRPC. */
const pairDrivers = [
  "curl over HTTP/1.1",
  "@connectrpc/connect-node, Connect over HTTP/2",
  "@connectrpc/connect-node, gRPC",
];

// Stories of one service go one after another, each in its order; the services are apart.
describe("the key service", { concurrent: true, shuffle: false, timeout }, () => {
  describe("on SQLite", () => {
    tellStories(drivers, async (dataDir) => [await startServer({ dataDir })]);
  });

  describePostgres("on PostgreSQL", () => {
    tellStories(drivers, async (dataDir) => {
      const args = ["--database-url", await freshDatabaseUrl()];
      return [await startServer({ dataDir, args })];
    });
  });

  describePostgres(
    "of two servers on one PostgreSQL, each call to the other one than the call before,",
    () => {
      const chosen = drivers.filter(({ name }) => pairDrivers.includes(name));
      tellStories(chosen, async (dataDir) => {
        const args = ["--database-url", await freshDatabaseUrl()];
        return Promise.all([startServer({ dataDir, args }), startServer({ dataDir, args })]);
      });
    },
  );
});

/** Tells the story of each client to the same servers. */
function tellStories(
  chosen: readonly Driver[],
  start: (dataDir: string) => Promise<readonly RunningServer[]>,
): void {
  const dataDir = makeTemporaryDirectory(afterAll);
  let servers: readonly RunningServer[] = [];
  beforeAll(async () => {
    servers = await start(dataDir);
  }, timeout);
  afterAll(() => Promise.all(servers.map(({ stop }) => stop("SIGKILL"))));

  let calls = 0;
  const nextUrl = (): string => {
    calls += 1;
    const server = servers[calls % servers.length];
    if (server === undefined) throw new Error("no server runs");
    return server.url;
  };

  for (const driver of chosen) {
    const { name, program = "node" } = driver;
    const isSkipped = isMissing(program);
    const title = isSkipped ? `for ${name}, which needs ${program}` : `for ${name}`;
    describe.skipIf(isSkipped)(title, { concurrent: false }, () => {
      let watchesBefore = 0;
      beforeAll(async () => {
        watchesBefore = await countWatches(servers);
      });
      describe("in a story", () => tellStory(createForeignClient(driver, nextUrl), driver.sendsStreams));

      it("ends the calls of watchers who have gone", async () => {
        await expect.poll(() => countWatches(servers), { timeout: 5000 }).toBe(watchesBefore);
      });
    });
  }

  it("ends in order after that, and has logged no fault", { concurrent: false }, async () => {
    const exits = await Promise.all(servers.map(({ stop }) => stop()));
    expect(exits.map(({ code }) => code)).toEqual(servers.map(() => 0));
    expect(exits.flatMap(({ stderr }) => stderr.split("\n").filter(isFault))).toEqual([]);
  });
}

/** Calls of WatchAuditLog that run, as servers say themselves. */
async function countWatches(servers: readonly RunningServer[]): Promise<number> {
  const counts = servers.map(async ({ url }) => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return Number(
      /^qsp_calls_running\{method="kms.KmsService\/WatchAuditLog"\} (\d+)$/m.exec(metrics)?.[1] ?? 0,
    );
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** pino writes 50 for "error" and 60 for "fatal". */
function isFault(line: string): boolean {
  return /"level":[56]0/.test(line);
}
