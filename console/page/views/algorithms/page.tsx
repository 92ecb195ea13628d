/** The algorithm explorer: sizes, security categories and measured times of all algorithms, old and new. */
import { useEffect, useState } from "preact/hooks";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { withoutToken } from "../../caller.ts";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Filter } from "../../parts/fields.tsx";
import { useSession } from "../../session.ts";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { formatMs } from "../../values.ts";
import { AlgorithmTable } from "./algorithm-table.tsx";
import {
  type AlgorithmRow,
  type Choice,
  type Column,
  categoryNames,
  chooseRows,
  families,
  kinds,
  toRows,
} from "./rows.ts";
import { SizeMap } from "./size-map.tsx";
import { type Measurement, useMeasurement } from "./use-measurement.ts";

const initial: Choice = { kind: "", family: "", category: "", sort: "resultBytes", isDescending: false };

export function Page() {
  const [rows, setRows] = useState<readonly AlgorithmRow[]>();
  const [choice, setChoice] = useState(initial);
  const loading = useTask();
  const measurement = useMeasurement();
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
  const chosen = chooseRows(rows ?? [], choice, measurement.times);
  return (
    <div class="tool">
      <header class="lead">
        <h1 tabIndex={-1}>Algorithm explorer</h1>
        <p>
          This server's parameter sets, next to the classical algorithms that they replace. All bars and axes
          are logarithmic: equal steps mean equal factors.
        </p>
      </header>
      {loading.failure && <FailureNote failure={loading.failure} />}
      <div class="fields">
        <Filter label="Purpose" options={kinds} {...bind("kind")} />
        <Filter label="Family" options={families} {...bind("family")} />
        <Filter label="Security category" options={categoryNames} {...bind("category")} />
      </div>
      {rows && (
        <>
          <SizeMap rows={chosen} />
          <MeasureControls measurement={measurement} rows={chosen} />
          <AlgorithmTable rows={chosen} times={measurement.times} choice={choice} onSort={sortBy} />
          <p class="hint text">
            Categories are NIST’s: 1 is as hard to break as AES-128, 3 as AES-192, 5 as AES-256; 2 lies
            between 1 and 3. Secret keys are in their standard’s expanded form. An RSA public key is its
            modulus and exponent.
          </p>
        </>
      )}
    </div>
  );
}

interface MeasureControlsProps {
  readonly measurement: Measurement;
  readonly rows: readonly AlgorithmRow[];
}

function MeasureControls({ measurement, rows }: MeasureControlsProps) {
  const session = useSession();
  const { running, emptyMs, failure } = measurement;
  if (settings.wantsToken && session === undefined) {
    return (
      <p class="note">
        <a href="#/log-in">Log in</a> to measure times: the calls to sign and exchange keys require a token.
      </p>
    );
  }
  const own = rows.filter(({ family }) => family !== "classical");
  return (
    <section aria-label="Measured times">
      <p class="act">
        {running === undefined ? (
          <button type="button" class="primary" onClick={() => void measurement.start(own)}>
            Measure on this server
          </button>
        ) : (
          <button type="button" onClick={measurement.stop}>
            Stop
          </button>
        )}
        <span class="hint" role="status">
          {running !== undefined
            ? `Measuring ${running} …`
            : emptyMs !== undefined
              ? `Calls without cryptography took ${formatMs(emptyMs)} in between. Times close to that are mostly the round trip.`
              : "Calls the server up to five times per displayed parameter set, one call at a time."}
        </span>
      </p>
      {failure && <FailureNote failure={failure} />}
      <p class="hint text">
        Times are medians of complete calls from your browser, including the network. The server does not
        offer the classical algorithms as calls, so they have no times.
      </p>
    </section>
  );
}
