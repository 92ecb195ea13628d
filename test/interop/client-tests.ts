/** What each third-party client must handle: the examples of all services, refusals, every kind of value, and streams. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OpenApiDocument } from "../../src/openapi/document.ts";
import { prepareServer } from "../openapi/api-server.ts";
import { createAnswerBook, loadExamples } from "../openapi/call-examples.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type ForeignServer, hasState } from "./calls.ts";
import type { Driver } from "./drivers.ts";
import { testExample } from "./example-tests.ts";
import { testRefusals } from "./refusal-tests.ts";
import { testStreams } from "./stream-tests.ts";
import { isMissing } from "./tools.ts";
import { testValues } from "./value-tests.ts";

const examples = await loadExamples();

/** The client under test, and its servers. */
export interface Tested {
  readonly driver: Driver;
  /** Returns the server for the next call of a service; with several servers, each call goes to a different one. */
  readonly nextServer: (service: Parameters<typeof hasState>[0]) => ForeignServer;
}

/** The servers of a client. */
export interface Servers {
  /** Servers on one database. */
  readonly count: number;
  /** Creates their database and returns its flags; SQLite if omitted. */
  readonly database?: () => Promise<readonly string[]>;
}

/**
 * Tests clients against the real program. Each client that calls the examples gets its own store, like the recorded
 * answers. The others share one.
 */
export function testClients(drivers: readonly Driver[], servers: Servers = { count: 1 }): void {
  const { variants = [], whole = [] } = Object.groupBy(drivers, ({ isVariant = false }) =>
    isVariant && process.env.QSP_TEST_LONG !== "1" ? "variants" : "whole",
  );
  for (const driver of whole) {
    describeDriver(driver, () =>
      testOnServers(servers, (nextServer) => {
        const book = createAnswerBook();
        const tested = { driver, nextServer };
        for (const example of examples)
          it(`calls ${example.rpc} as in ${example.name}`, () => testExample(tested, book, example));
        testCalls(tested);
      }),
    );
  }
  if (variants.length === 0) return;
  // The last test stops the servers.
  describe("with other settings", { shuffle: false }, () => {
    testOnServers(servers, (nextServer) => {
      for (const driver of variants) describeDriver(driver, () => testCalls({ driver, nextServer }));
    });
  });
}

function describeDriver({ name, program = "node" }: Driver, define: () => void): void {
  const title = isMissing(program) ? `${name}, which needs ${program}` : name;
  // Examples use the answers of earlier ones.
  describe.skipIf(isMissing(program))(title, { shuffle: false }, define);
}

function testCalls(tested: Tested): void {
  testRefusals(tested);
  testValues(tested);
  testStreams(tested);
}

function testOnServers(
  { count, database }: Servers,
  define: (nextServer: Tested["nextServer"]) => void,
): void {
  const dataDir = makeTemporaryDirectory(afterAll);
  let running: readonly RunningServer[] = [];
  let described: readonly ForeignServer[] = [];
  beforeAll(async () => {
    const args = await prepareServer(dataDir, afterAll, ["--auth", "open", ...((await database?.()) ?? [])]);
    running = await Promise.all(Array.from({ length: count }, () => startServer({ dataDir, args })));
    described = await Promise.all(running.map(({ url }) => describeServer(url)));
  });
  afterAll(() => Promise.all(running.map(({ stop }) => stop("SIGKILL"))));

  let calls = 0;
  define((service) => {
    calls += hasState(service) ? 0 : 1;
    const server = described[hasState(service) ? 0 : calls % described.length];
    if (server === undefined) throw new Error("no server runs");
    return server;
  });

  it("leaves no stream open", async () => {
    await expect.poll(() => countStreams(running)).toBe(0);
  });

  it("causes no server error, and its servers stop cleanly", async () => {
    const exits = await Promise.all(running.map(({ stop }) => stop()));
    expect(exits.map(({ code }) => code)).toEqual(running.map(() => 0));
    expect(exits.flatMap(({ stderr }) => stderr.split("\n").filter(isFault))).toEqual([]);
  });
}

async function describeServer(url: string): Promise<ForeignServer> {
  const response = await fetch(`${url}/openapi.json`);
  return { url, document: (await response.json()) as OpenApiDocument };
}

/** Counts unfinished streaming calls, according to the servers' metrics. */
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
