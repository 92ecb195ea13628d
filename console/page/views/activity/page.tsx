/** The server's activity in the last minute, from its metrics: calls per second, latency and errors. */

import { useEffect, useState } from "preact/hooks";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { parseMetrics } from "../../../../src/client/prometheus-text.ts";
import { type Activity, compareSnapshots, type Snapshot } from "../../../../src/client/server-activity.ts";
import { createUnreachable, Failure, toFailure } from "../../failure.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Lead } from "../../parts/lead.tsx";
import { RecordTable } from "../../parts/record-table.tsx";
import { facts } from "../../parts/show.tsx";
import { useSession } from "../../session.ts";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { formatMs, formatNumber, toUtf8 } from "../../values.ts";

const intervalMs = 2000;
/** Readings of one minute. */
const maxSnapshots = 31;
/** Number of calls that the button makes, one after the other. */
const trafficCalls = 50;

export function Page() {
  const { snapshots, failure } = useSnapshots();
  const [first] = snapshots;
  const last = snapshots.at(-1);
  return (
    <div class="tool">
      <Lead title="Activity">
        What this server is doing now: all clients' calls, over every protocol. The page reads{" "}
        <a href="/metrics">/metrics</a> every {intervalMs / 1000} seconds, which does not count as a call.
      </Lead>
      {failure && <FailureNote failure={failure} />}
      {failure && <Explanation reason={failure.reason} />}
      {first && last && (
        <>
          <TrafficButton />
          {first === last ? <p>Measuring …</p> : <Summary activity={compareSnapshots(first, last)} />}
        </>
      )}
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

function Summary({ activity }: { readonly activity: Activity }) {
  const { calls, seconds, callsPerSecond, failures, latency } = activity;
  const called = calls.filter((one) => one.callsPerSecond > 0);
  const failuresPerSecond = Object.values(failures).reduce((sum, perSecond) => sum + perSecond, 0);
  const count = (perSecond: number): string => formatNumber(Math.round(perSecond * seconds));
  return (
    <section aria-labelledby="methods">
      <h2 id="methods">The last {formatNumber(Math.round(seconds))} seconds</h2>
      {facts({
        "Calls per second": callsPerSecond.toFixed(1),
        "Failures per second": failuresPerSecond.toFixed(1),
        "Latency, median": formatLatency(latency.p50Ms),
        "Latency, 95th percentile": formatLatency(latency.p95Ms),
      })}
      {called.length === 0 && <p>No calls in this time.</p>}
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
              shows: (one) => count(one.callsPerSecond - one.failuresPerSecond),
            },
            { title: "Refused or failed", isNumber: true, shows: (one) => count(one.failuresPerSecond) },
            { title: "Median", isNumber: true, shows: (one) => formatLatency(one.latency.p50Ms) },
          ]}
        />
      )}
      <p class="hint">Latencies are estimated from the buckets of a histogram.</p>
    </section>
  );
}

/** A latency above the last histogram bucket is unknown. */
function formatLatency(ms: number | undefined): string {
  return ms === undefined || ms === Number.POSITIVE_INFINITY ? "–" : formatMs(ms);
}

interface Readings {
  /** Of the last minute, oldest first. */
  readonly snapshots: readonly Snapshot[];
  /** Why the newest reading failed. */
  readonly failure: Failure | undefined;
}

const nothing: Readings = { snapshots: [], failure: undefined };

/** Polls the server's metrics while the page is visible. */
function useSnapshots(): Readings {
  const token = useSession()?.token;
  const [readings, setReadings] = useState(nothing);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      // A hidden page sends no requests.
      if (!document.hidden) {
        const next = await fetchSnapshot(token, abort.signal).catch(toFailure);
        if (abort.signal.aborted) return;
        setReadings(({ snapshots }) =>
          next instanceof Failure
            ? { snapshots, failure: next }
            : { snapshots: [...snapshots, next].slice(-maxSnapshots), failure: undefined },
        );
      }
      timer = setTimeout(() => void read(), intervalMs);
    };
    setReadings(nothing);
    void read();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [token]);
  return readings;
}

/** @throws Failure with the server's reason, if it refuses */
async function fetchSnapshot(token: string | undefined, signal: AbortSignal): Promise<Snapshot> {
  const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch("/metrics", { headers, signal }).catch(() => {
    throw createUnreachable();
  });
  if (!response.ok) throw await readRefusal(response);
  return { atMs: performance.now(), samples: parseMetrics(await response.text()) };
}

async function readRefusal(response: Response): Promise<Failure> {
  const { status } = response;
  const body = await response.json().catch(() => undefined);
  const [message = `The server answered with status ${status}.`, reason = `HTTP_${status}`] = [
    body?.message,
    body?.details?.[0]?.reason,
  ].map((text: unknown) => (typeof text === "string" ? text : undefined));
  return new Failure(reason, String(status), message);
}
