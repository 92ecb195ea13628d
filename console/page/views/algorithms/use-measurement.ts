/** The state of a measurement: one algorithm after the other, until all are done or the reader stops it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { createCaller } from "../../calls.ts";
import { type Failure, toFailure } from "../../failure.ts";
import { measureEmptyCall, measureTimes, pickMedian, warmUp } from "./measure.ts";
import type { AlgorithmRow, Times } from "./rows.ts";

export interface Measurement {
  readonly times: ReadonlyMap<string, Times>;
  /** Milliseconds of a call without cryptography: the median of the calls in between. */
  readonly emptyMs: number | undefined;
  /** The algorithm being measured. */
  readonly running: string | undefined;
  readonly failure: Failure | undefined;
  start(rows: readonly AlgorithmRow[]): Promise<void>;
  stop(): void;
}

export function useMeasurement(): Measurement {
  const [times, setTimes] = useState<ReadonlyMap<string, Times>>(new Map());
  const [emptyMs, setEmptyMs] = useState<number>();
  const [running, setRunning] = useState<string>();
  const [failure, setFailure] = useState<Failure>();
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);

  const start: Measurement["start"] = async (rows) => {
    abort.current.abort();
    const own = new AbortController();
    abort.current = own;
    const measuring = { caller: createCaller(), signal: own.signal, now: () => performance.now() };
    setFailure(undefined);
    try {
      setRunning("after some warm-up calls");
      await warmUp(measuring);
      const empty: number[] = [];
      for (const row of rows) {
        setRunning(row.name);
        // In between, so that it is measured under the same load.
        empty.push(await measureEmptyCall(measuring));
        setEmptyMs(pickMedian(empty));
        const measured = await measureTimes(row, measuring);
        setTimes((before) => new Map(before).set(row.name, measured));
      }
    } catch (thrown) {
      if (!own.signal.aborted) setFailure(toFailure(thrown));
    }
    if (abort.current === own) setRunning(undefined);
  };
  return { times, emptyMs, running, failure, start, stop: () => abort.current.abort() };
}
