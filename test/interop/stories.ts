/** Tells a story, test by test, to a service that runs as its users run it, by foreign clients of all kinds. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type Driver, drivers } from "./drivers.ts";
import { isMissing } from "./tools.ts";

/** What a story is told with. */
export interface Teller {
  readonly driver: Driver;
  /** The server of the next call: with several servers, another one than that of the call before. */
  nextUrl(): string;
}

/** Who tells a story where; each client tells it once. */
export interface StoryClients {
  readonly onSqlite: readonly Driver[];
  readonly onPostgres: readonly Driver[];
  /** With two servers on one PostgreSQL, each call to the other one than the call before. */
  readonly onTwoServers: readonly Driver[];
}

/** A client of each protocol and of each family. */
export const someClients: StoryClients = {
  onSqlite: chooseDrivers(
    "buf curl over grpcweb, knowing nothing but the address",
    "@grpc/grpc-js, with what reflection says",
  ),
  onPostgres: chooseDrivers(
    "grpcurl, knowing nothing but the address",
    "@connectrpc/connect-node, Connect over HTTP/2",
  ),
  onTwoServers: chooseDrivers("curl over HTTP/1.1", "@connectrpc/connect-node, gRPC"),
};

const chosen = Object.values(someClients).flat();
/** All other clients. */
export const otherClients: StoryClients = {
  onSqlite: drivers.filter((driver) => !chosen.includes(driver)),
  onPostgres: [],
  onTwoServers: [],
};

function chooseDrivers(...names: string[]): readonly Driver[] {
  return names.map((name) => {
    const driver = drivers.find((one) => one.name === name);
    if (driver === undefined) throw new Error(`there is no driver ${name}`);
    return driver;
  });
}

const timeout = 180_000;

/**
 * Has each of the clients tell a story where it is to: on SQLite, on PostgreSQL or with two servers on one PostgreSQL.
 *
 * Stories that one service hears go one after another, each in its order; the services are apart.
 */
export function tellEverywhere(title: string, clients: StoryClients, tell: (teller: Teller) => void): void {
  describe(title, { concurrent: true, shuffle: false, timeout }, () => {
    describe("on SQLite", () => {
      tellStories(clients.onSqlite, tell, async (dataDir) => [await startServer({ dataDir })]);
    });

    if (clients.onPostgres.length === 0) return;
    describePostgres("on PostgreSQL", () => {
      tellStories(clients.onPostgres, tell, async (dataDir) => {
        const args = ["--database-url", await freshDatabaseUrl()];
        return [await startServer({ dataDir, args })];
      });
    });

    describePostgres(
      "of two servers on one PostgreSQL, each call to the other one than the call before,",
      () => {
        tellStories(clients.onTwoServers, tell, async (dataDir) => {
          const args = ["--database-url", await freshDatabaseUrl()];
          return Promise.all([startServer({ dataDir, args }), startServer({ dataDir, args })]);
        });
      },
    );
  });
}

/** Tells the story of each client to the same servers; none start if there is no client. */
function tellStories(
  clients: readonly Driver[],
  tell: (teller: Teller) => void,
  start: (dataDir: string) => Promise<readonly RunningServer[]>,
): void {
  if (clients.length === 0) return;
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

  for (const driver of clients) {
    const { name, program = "node" } = driver;
    const isSkipped = isMissing(program);
    const title = isSkipped ? `for ${name}, which needs ${program}` : `for ${name}`;
    describe.skipIf(isSkipped)(title, { concurrent: false }, () => {
      let streamsBefore = 0;
      beforeAll(async () => {
        streamsBefore = await countStreams(servers);
      });
      describe("in a story", () => tell({ driver, nextUrl }));

      it("ends the streams of callers who have gone", async () => {
        await expect.poll(() => countStreams(servers)).toBe(streamsBefore);
      });
    });
  }

  it("ends in order after that, and has logged no fault", { concurrent: false }, async () => {
    const exits = await Promise.all(servers.map(({ stop }) => stop()));
    expect(exits.map(({ code }) => code)).toEqual(servers.map(() => 0));
    expect(exits.flatMap(({ stderr }) => stderr.split("\n").filter(isFault))).toEqual([]);
  });
}

/** Calls that follow something, or send a stream, and have not ended, as servers say themselves. */
async function countStreams(servers: readonly RunningServer[]): Promise<number> {
  const counts = servers.map(async ({ url }) => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const running = metrics.matchAll(
      /^qsp_calls_running\{method="[a-z]+\.\w+\/(?:Watch|\w*Stream|Tunnel)\w*"\} (\d+)$/gm,
    );
    return running.reduce((sum, [, count]) => sum + Number(count), 0);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** pino writes 50 for "error" and 60 for "fatal". */
function isFault(line: string): boolean {
  return /"level":[56]0/.test(line);
}
