/** The server's activity: calls per second, latency and errors, from its metrics. */

import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { compareSnapshots, type Snapshot } from "../../../../src/client/server-activity.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { RecordTable } from "../../parts/record-table.tsx";
import { useSession } from "../../session.ts";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { formatMs, formatNumber, toUtf8 } from "../../values.ts";
import { countFailures, findNewest, type Interval } from "./intervals.ts";
import { LineChart } from "./line-chart.tsx";
import { type Activity, intervalMs, maxPoints, useActivity } from "./use-activity.ts";

/** Number of calls that the button makes, one after the other. */
const trafficCalls = 50;

export function Page() {
  const activity = useActivity();
  const { last, failure } = activity;
  return (
    <div class="tool">
      <header class="lead">
        <h1 tabIndex={-1}>Activity</h1>
        <p>
          What this server is doing now: all clients' calls, over every protocol. The page reads{" "}
          <a href="/metrics">/metrics</a> every {intervalMs / 1000} seconds, which does not count as a call.
        </p>
      </header>
      {failure && <FailureNote failure={failure} />}
      {failure && <Explanation reason={failure.reason} />}
      {last && <Charts activity={activity} />}
    </div>
  );
}

/** Why a reader may see no data. */
function Explanation({ reason }: { readonly reason: string }) {
  const session = useSession();
  if (reason === "UNREACHABLE") return null;
  if (reason === "ROUTE_NOT_FOUND") return <p>The operator has turned metrics off for this server.</p>;
  return (
    <p>
      Metrics reveal how the server is used, so this server shows them only to users with the role auditor or
      admin. {session === undefined ? <a href="#/log-in">Log in</a> : "Log out, and log in"} as one, or start
      the server with <code>--metrics open</code> to show them to everyone.
    </p>
  );
}

function Charts({ activity: { first, last, intervals } }: { readonly activity: Activity }) {
  const called = findNewest(intervals, ({ callsPerSecond }) => callsPerSecond > 0);
  const measured = findNewest(intervals, ({ latency }) => keepFinite(latency.p50Ms) !== undefined);
  const failed = findNewest(intervals, (interval) => countFailures(interval) > 0);
  const formatRate = (value = 0): string => (value < 10 ? value.toFixed(1) : formatNumber(Math.round(value)));
  return (
    <>
      <TrafficButton />
      <div class="line-charts">
        <LineChart
          title="Calls per second"
          now={formatRate(called?.interval.callsPerSecond)}
          seconds={called?.seconds ?? 0}
          values={intervals.map(({ callsPerSecond }) => callsPerSecond)}
          count={maxPoints}
          format={formatNumber}
        />
        <LineChart
          title="Latency: median, and 95th percentile (pale)"
          now={formatLatencies(measured?.interval)}
          seconds={measured?.seconds ?? 0}
          values={intervals.map(({ latency }) => latency.p50Ms).map(keepFinite)}
          others={intervals.map(({ latency }) => latency.p95Ms).map(keepFinite)}
          count={maxPoints}
          format={formatMs}
        />
        <LineChart
          title="Refused or failed, per second"
          now={formatRate(failed && countFailures(failed.interval))}
          seconds={failed?.seconds ?? 0}
          values={intervals.map(countFailures)}
          count={maxPoints}
          format={formatNumber}
        />
      </div>
      <p class="hint">
        The charts show the last {(maxPoints * intervalMs) / 60_000} minutes. Latencies are estimated from the
        buckets of a histogram.
      </p>
      {first && last && <MethodTable first={first} last={last} />}
    </>
  );
}

/** A latency above the last histogram bucket is unknown. */
function keepFinite(ms: number | undefined): number | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : ms;
}

function formatLatencies(interval: Interval | undefined): string {
  const [p50Ms, p95Ms] = [interval?.latency.p50Ms, interval?.latency.p95Ms].map(keepFinite);
  return p50Ms === undefined ? "–" : `${formatMs(p50Ms)}, ${p95Ms === undefined ? "–" : formatMs(p95Ms)}`;
}

function TrafficButton() {
  const session = useSession();
  const signing = useTask();
  const canCall = settings.services.has("pqc.PqcService") && (!settings.wantsToken || session !== undefined);
  if (!canCall) return null;
  const sign = (): Promise<void> =>
    signing.run(
      async ({ call }) => {
        for (let calls = 0; calls < trafficCalls; calls += 1)
          await call(PqcService.method.signData, { data: toUtf8(`message ${calls}`) });
      },
      () => {},
    );
  return (
    <>
      <ActionButton task={signing} onClick={() => void sign()}>
        Sign {trafficCalls} messages
      </ActionButton>
      {signing.failure && <FailureNote failure={signing.failure} />}
    </>
  );
}

/** RPCs called since the page was opened, most frequent first. */
function MethodTable({ first, last }: { readonly first: Snapshot; readonly last: Snapshot }) {
  const { calls, seconds } = compareSnapshots(first, last);
  const called = calls.filter(({ callsPerSecond }) => callsPerSecond > 0);
  const count = (perSecond: number): string => formatNumber(Math.round(perSecond * seconds));
  return (
    <section aria-labelledby="methods">
      <h2 id="methods">Calls since you opened this page</h2>
      {called.length === 0 && <p>None yet.</p>}
      {called.length > 0 && (
        <RecordTable
          label="Calls"
          rows={called}
          identify={({ call }) => call}
          columns={[
            { title: "RPC", shows: ({ call }) => <code>{call}</code> },
            {
              title: "Answered",
              isNumber: true,
              shows: ({ callsPerSecond, failuresPerSecond }) => count(callsPerSecond - failuresPerSecond),
            },
            {
              title: "Refused or failed",
              isNumber: true,
              shows: ({ failuresPerSecond }) => count(failuresPerSecond),
            },
            {
              title: "Median",
              isNumber: true,
              shows: ({ latency: { p50Ms } }) => (p50Ms === undefined ? "–" : formatMs(p50Ms)),
            },
          ]}
        />
      )}
    </section>
  );
}
