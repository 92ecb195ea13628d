/** `qsp top`: a live view of a server. */
import { setTimeout as sleep } from "node:timers/promises";
import { readToken } from "../../src/cli/connection/api-client.ts";
import { explainConnection } from "../../src/cli/connection/explain-connection.ts";
import { type CliError, exitCodes, toCliError } from "../../src/cli/exit-codes.ts";
import type { Verb, VerbInput } from "../../src/cli/verb.ts";
import { type Activity, compareSnapshots, type Snapshot } from "../../src/client/server-activity.ts";
import { drawActivity, type Line, summarize } from "./draw.ts";
import { fetchMetrics } from "./fetch-metrics.ts";
import { openScreen, type Screen } from "./screen.ts";

const defaultIntervalSeconds = 2;
const defaultTimeoutSeconds = 10;
/** Size of the output when it is not a terminal. */
const plainSize = { columns: 120, rows: 1000 };

export const topVerbs: readonly Verb[] = [
  {
    name: "top",
    operands: [],
    options: {
      interval: {
        value: "SECONDS",
        meaning: `Seconds between two readings, 1 to 3600; default: ${defaultIntervalSeconds}`,
      },
      once: { meaning: "Prints the activity of one interval and exits" },
    },
    meaning:
      "Shows live activity from /metrics: calls per second and their durations, calls in flight, the queue of\n" +
      "cryptographic work, failures, audit entries, memory and CPU. On a terminal it draws in place; q quits.\n" +
      "Elsewhere it prints one line per interval. With --auth token, log in as an auditor or admin.",
    example: "qsp top --once --interval 1",
    async run(input) {
      const { options, output } = input;
      const intervalMs = (options.whole("interval", 1, 3600) ?? defaultIntervalSeconds) * 1000;
      const read = createReader(input);
      // The first reading reports mistakes before the terminal is taken over.
      const first = await read();
      if (options.flag("once")) {
        await sleep(intervalMs);
        print(input, compareSnapshots(first, await read()), true);
        return exitCodes.done;
      }
      if (!process.stdout.isTTY || output.isJson) return printForever(input, first, read, intervalMs);
      return drawUntilKey(input, first, read, intervalMs);
    },
  },
];

type Read = () => Promise<Snapshot>;

function createReader({ options, server }: VerbInput): Read {
  const token = readToken(options, server.url);
  if (token !== undefined) server.requirePrivacy();
  const timeoutMs = (options.whole("timeout", 1, 86_400) ?? defaultTimeoutSeconds) * 1000;
  return () => fetchMetrics({ url: server.url, token, caPem: server.caPem, timeoutMs });
}

function print({ output, server }: VerbInput, activity: Activity, isWhole: boolean): void {
  const text = isWhole
    ? drawActivity(server.url, activity, plainSize)
        .map((line) => line.text.trimEnd())
        .join("\n")
    : summarize(activity);
  output.report({ url: server.url, ...activity }, text);
}

async function printForever(
  input: VerbInput,
  first: Snapshot,
  read: Read,
  intervalMs: number,
): Promise<never> {
  for (let before = first; ; ) {
    await sleep(intervalMs);
    const after = await read();
    print(input, compareSnapshots(before, after), false);
    before = after;
  }
}

async function drawUntilKey(
  input: VerbInput,
  first: Snapshot,
  read: Read,
  intervalMs: number,
): Promise<number> {
  const { url } = input.server;
  const screen = openScreen(process.stdout, process.stdin);
  let draw = (): void =>
    screen.draw([{ text: `${url}: reading for ${intervalMs / 1000} s; q quits`, style: "quiet" }]);
  draw();
  screen.onResize(() => draw());
  const stop = new AbortController();
  const show = (activity: Activity | undefined, problem: CliError | undefined): void => {
    draw = () => screen.draw(compose(url, activity, problem, screen));
    draw();
  };
  void watch({ input, first, read, intervalMs, signal: stop.signal, show });
  try {
    return (await screen.ended) === "q" ? exitCodes.done : exitCodes.interrupted;
  } finally {
    stop.abort();
    screen.close();
  }
}

interface WatchInput {
  readonly input: VerbInput;
  readonly first: Snapshot;
  readonly read: Read;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  readonly show: (activity: Activity | undefined, problem: CliError | undefined) => void;
}

/** Polls until it is stopped. Errors do not end it: the server may come back. */
async function watch({ input, first, read, intervalMs, signal, show }: WatchInput): Promise<void> {
  let before = first;
  let shown: Activity | undefined;
  while (!signal.aborted) {
    await sleep(intervalMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    try {
      const after = await read();
      shown = compareSnapshots(before, after);
      before = after;
      if (!signal.aborted) show(shown, undefined);
    } catch (error) {
      const { server } = input;
      const problem = (await explainConnection(error, server)) ?? toCliError(error, server.url);
      if (!signal.aborted) show(shown, problem);
    }
  }
}

/** The screen's lines: the last reading, then the keys or the current problem. */
function compose(
  url: string,
  activity: Activity | undefined,
  problem: CliError | undefined,
  { size: { columns, rows } }: Screen,
): Line[] {
  const drawn = activity === undefined ? [] : drawActivity(url, activity, { columns, rows: rows - 1 });
  const last: Line =
    problem === undefined
      ? { text: "q quits", style: "quiet" }
      : { text: `${problem.message}; retrying`.slice(0, columns), style: "bad" };
  return [...drawn, last];
}
