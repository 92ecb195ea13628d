/**
 * How many audit entries per second one chain accepts, without signatures or network: the limit for all replicas
 * together. Splits the duration of a transaction into a fixed part and a part per entry.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { sqliteIn } from "../../src/database/database.ts";
import { findPostgres, startPostgres } from "../support/postgres-server.ts";
import type { WriterInput, WriterResult } from "./audit-writer.ts";
import { median, report } from "./results.ts";
import { measureInTurn, measureMs } from "./tools.ts";

const run = promisify(execFile);

/** Uses in flight for each server. */
const loads = [1, 16, 64, 256];
/** Servers that share a PostgreSQL database. */
const serverCounts = [1, 2, 4];
/** Time for all writers to start and warm up, in milliseconds. */
const startMs = 6000;

/** One measurement with all writers. */
interface Rate {
  readonly entriesPerSecond: number;
  readonly entriesPerTransaction: number;
  readonly transactionMs: number;
  /** CPU time of one server for each of its entries, in microseconds. */
  readonly cpuPerEntry: number;
}

/** Measures the chain on both databases. */
export async function measureAudit(dataDir: string): Promise<void> {
  let places = 0;
  const nextFolder = (): string => join(dataDir, `audit-${places++}`);
  await measurePlace("SQLite", 1, async () => {
    const folder = nextFolder();
    return { location: sqliteIn(folder), dataDir: folder };
  });
  if (findPostgres() === undefined) return;
  const postgres = await startPostgres();
  try {
    for (const servers of serverCounts)
      await measurePlace("PostgreSQL", servers, async () => ({
        location: { kind: "postgres", url: await postgres.createDatabase() },
        dataDir: nextFolder(),
      }));
  } finally {
    await postgres.close();
  }
}

type Place = Pick<WriterInput, "location" | "dataDir">;

async function measurePlace(
  database: string,
  servers: number,
  makePlace: () => Promise<Place>,
): Promise<void> {
  const place = `${database}, ${servers} ${servers === 1 ? "server" : "servers"}`;
  const rates = await measureInTurn(
    loads.map((inFlight) => [
      `audit entries on ${place}, ${inFlight} in flight`,
      async () => measure(await makePlace(), { inFlight, servers }),
    ]),
  );
  reportRates(place, rates);
  reportModel(place, rates.flat());
}

async function measure(
  place: Place,
  { inFlight, servers }: { readonly inFlight: number; readonly servers: number },
): Promise<Rate> {
  // The first writer creates the store and the master key.
  await write({ ...place, inFlight: 1, fromMs: 0, untilMs: 0 });
  const fromMs = Date.now() + startMs;
  const order: WriterInput = { ...place, inFlight, fromMs, untilMs: fromMs + measureMs };
  const results = await Promise.all(Array.from({ length: servers }, () => write(order)));
  const sum = (read: (result: WriterResult) => number): number =>
    results.reduce((total, result) => total + read(result), 0);
  const entries = sum((result) => result.entries);
  const transactions = sum((result) => result.transactions);
  return {
    entriesPerSecond: entries / (measureMs / 1000),
    entriesPerTransaction: entries / transactions,
    transactionMs: measureMs / transactions,
    cpuPerEntry: sum((result) => result.cpuPerEntry * result.entries) / entries,
  };
}

async function write(order: WriterInput): Promise<WriterResult> {
  const program = join(import.meta.dirname, "audit-writer.ts");
  const { stdout } = await run(process.execPath, [
    "--max-semi-space-size=64",
    program,
    JSON.stringify(order),
  ]);
  return JSON.parse(stdout);
}

function reportRates(place: string, rates: readonly (readonly Rate[])[]): void {
  for (const [i, measured] of rates.entries()) {
    const medianOf = (read: (rate: Rate) => number): number => median(measured.map(read));
    const values = measured.map(({ entriesPerSecond }) => entriesPerSecond);
    report(`Audit entries on ${place}, ${loads[i]} in flight each`, values, {
      unit: "per second",
      parts: {
        "entries per transaction": medianOf((rate) => rate.entriesPerTransaction),
        "µs per transaction": medianOf((rate) => rate.transactionMs) * 1000,
        "CPU µs per entry": medianOf((rate) => rate.cpuPerEntry),
      },
    });
  }
}

/**
 * Fits `transaction = fixed + entries × each` by least squares of the relative error. Excludes the run with a single
 * caller, because a transaction with one entry does not wait for others to join it.
 */
function reportModel(place: string, rates: readonly Rate[]): void {
  const points = rates
    .filter(({ entriesPerTransaction }) => entriesPerTransaction > 1)
    .map(({ entriesPerTransaction: x, transactionMs: y }) => ({ x, y, weight: 1 / (y * y) }));
  const total = (read: (point: (typeof points)[number]) => number): number =>
    points.reduce((sum, point) => sum + read(point) * point.weight, 0);
  const [w, x, y, xx, xy] = [
    total(() => 1),
    total((p) => p.x),
    total((p) => p.y),
    total((p) => p.x * p.x),
    total((p) => p.x * p.y),
  ];
  const each = (w * xy - x * y) / (w * xx - x * x);
  const fixed = (y - each * x) / w;
  const errors = points.map((p) => Math.abs(fixed + each * p.x - p.y) / p.y);
  report(`Model of ${place}: fixed µs per transaction`, [fixed * 1000], { unit: "µs" });
  report(`Model of ${place}: µs per entry`, [each * 1000], { unit: "µs" });
  report(
    `Model of ${place}: error`,
    errors.map((error) => error * 100),
    { unit: "% (median)" },
  );
  report(`Model of ${place}: largest error`, [Math.max(...errors) * 100], { unit: "%" });
}
