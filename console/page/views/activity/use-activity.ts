/** Polls the server's metrics while the page is visible. */
import { useEffect, useState } from "preact/hooks";
import { parseMetrics } from "../../../../src/client/prometheus-text.ts";
import {
  compareSnapshots,
  type Activity as Interval,
  type Snapshot,
} from "../../../../src/client/server-activity.ts";
import { createUnreachable, Failure, toFailure } from "../../failure.ts";
import { useSession } from "../../session.ts";

export const intervalMs = 2000;
/** Two minutes. */
export const maxPoints = 60;

export interface Activity {
  /** The first and the newest reading. */
  readonly first: Snapshot | undefined;
  readonly last: Snapshot | undefined;
  /** One per interval, oldest first. */
  readonly intervals: readonly Interval[];
  /** Why the newest reading failed. */
  readonly failure: Failure | undefined;
}

const nothing: Activity = { first: undefined, last: undefined, intervals: [], failure: undefined };

export function useActivity(): Activity {
  const token = useSession()?.token;
  const [activity, setActivity] = useState(nothing);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      // A hidden page sends no requests.
      if (!document.hidden) {
        const update = await fetchSnapshot(token, abort.signal).then(addSnapshot, keepFailure);
        if (abort.signal.aborted) return;
        setActivity(update);
      }
      timer = setTimeout(() => void read(), intervalMs);
    };
    setActivity(nothing);
    void read();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [token]);
  return activity;
}

type Update = (before: Activity) => Activity;

function addSnapshot(next: Snapshot): Update {
  return ({ first, last, intervals }) => ({
    first: first ?? next,
    last: next,
    intervals:
      last === undefined ? intervals : [...intervals, compareSnapshots(last, next)].slice(-maxPoints),
    failure: undefined,
  });
}

function keepFailure(thrown: unknown): Update {
  const failure = toFailure(thrown);
  return (before) => ({ ...before, failure });
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
