/** The algorithm explorer: sizes, security categories and measured times of all algorithms, old and new. */

import { useEffect, useRef, useState } from "preact/hooks";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { withoutToken } from "../../caller.ts";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Filter } from "../../parts/fields.tsx";
import { Lead } from "../../parts/lead.tsx";
import { useSession } from "../../session.ts";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { AlgorithmTable } from "./algorithm-table.tsx";
import { measureTimes } from "./measure.ts";
import {
  type AlgorithmRow,
  type Choice,
  type Column,
  categoryNames,
  chooseRows,
  families,
  kinds,
  type Times,
  toRows,
} from "./rows.ts";

const initial: Choice = { kind: "", family: "", category: "", sort: "resultBytes", isDescending: false };

export function Page() {
  const [rows, setRows] = useState<readonly AlgorithmRow[]>();
  const [choice, setChoice] = useState(initial);
  const loading = useTask();
  const [times, setTimes] = useState<ReadonlyMap<string, Times>>(new Map());
  useEffect(() => {
    void loading.run(
      ({ call }) => call(PqcService.method.getAlgorithmInfo, {}, withoutToken),
      ({ algorithms }) => setRows(toRows(algorithms)),
    );
  }, []);
  const bind = (name: "kind" | "family" | "category") => ({
    value: choice[name],
    onChange: (value: string) => setChoice({ ...choice, [name]: value }),
  });
  const sortBy = (sort: Column): void =>
    setChoice({ ...choice, sort, isDescending: choice.sort === sort && !choice.isDescending });
  const chosen = chooseRows(rows ?? [], choice, times);
  return (
    <div class="tool">
      <Lead title="Algorithm explorer">
        This server's parameter sets, next to the classical algorithms that they replace. All bars are
        logarithmic: equal steps mean equal factors.
      </Lead>
      {loading.failure && <FailureNote failure={loading.failure} />}
      <div class="fields">
        <Filter label="Purpose" options={kinds} {...bind("kind")} />
        <Filter label="Family" options={families} {...bind("family")} />
        <Filter label="Security category" options={categoryNames} {...bind("category")} />
      </div>
      {rows && (
        <>
          <Measurement
            rows={chosen}
            onMeasured={(name, measured) => setTimes((before) => new Map(before).set(name, measured))}
          />
          <AlgorithmTable rows={chosen} times={times} choice={choice} onSort={sortBy} />
          <p class="hint text">
            Categories are NIST’s: 1 is as hard to break as AES-128, 3 as AES-192, 5 as AES-256; 2 lies
            between 1 and 3. Secret keys are in their standard’s expanded form, but X-Wing and Ed25519 have a
            seed of 32 bytes, and RSA has modulus and private exponent. An RSA public key is modulus and
            public exponent.
          </p>
        </>
      )}
    </div>
  );
}

interface MeasurementProps {
  readonly rows: readonly AlgorithmRow[];
  readonly onMeasured: (name: string, times: Times) => void;
}

/** Measures one algorithm after the other, until all are done or the reader stops it. */
function Measurement({ rows, onMeasured }: MeasurementProps) {
  const session = useSession();
  const task = useTask();
  const [current, setCurrent] = useState("");
  const isWanted = useRef(false);
  const stop = (): void => {
    isWanted.current = false;
  };
  useEffect(() => stop, []);
  if (settings.wantsToken && session === undefined) {
    return (
      <p class="note">
        <a href="#/log-in">Log in</a> to measure times: the calls to sign and exchange keys require a token.
      </p>
    );
  }
  const start = (): void => {
    isWanted.current = true;
    void task.run(
      async (caller) => {
        for (const row of rows.filter(({ family }) => family !== "classical")) {
          if (!isWanted.current) return;
          setCurrent(row.name);
          onMeasured(row.name, await measureTimes(row, caller));
        }
      },
      () => {},
    );
  };
  return (
    <section aria-label="Measured times">
      <p class="act">
        {task.isRunning ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="button" class="primary" onClick={start}>
            Measure on this server
          </button>
        )}
        <span class="hint" role="status">
          {task.isRunning
            ? `Measuring ${current} …`
            : "Calls the server up to five times per displayed parameter set, one call at a time."}
        </span>
      </p>
      {task.failure && <FailureNote failure={task.failure} />}
      <p class="hint text">
        Each time is the fastest of these calls, from your browser and including the network. The server does
        not offer the classical algorithms as calls, so they have no times.
      </p>
    </section>
  );
}
