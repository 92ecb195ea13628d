/** Runs Prometheus on a free port. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A running Prometheus. */
export interface RunningPrometheus {
  /** The names of the alerts in these states. */
  listAlerts(...states: ("pending" | "firing")[]): Promise<string[]>;
  /** The error of each target by its address; "" for a target that answers. */
  listTargets(): Promise<Readonly<Record<string, string>>>;
  stop(): Promise<void>;
}

interface AlertsAnswer {
  readonly data: {
    readonly alerts: readonly { readonly state: string; readonly labels: Readonly<Record<string, string>> }[];
  };
}

interface TargetsAnswer {
  readonly data: {
    readonly activeTargets: readonly {
      readonly labels: Readonly<Record<string, string>>;
      readonly health: string;
      readonly lastError: string;
    }[];
  };
}

/** Starts Prometheus with a configuration, in a writable directory. */
export async function startPrometheus(configFile: string, directory: string): Promise<RunningPrometheus> {
  const child = spawn(
    "prometheus",
    [
      ...[`--config.file=${configFile}`, `--storage.tsdb.path=${directory}/tsdb`],
      ...["--web.listen-address=127.0.0.1:0", "--log.format=json"],
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const closed = once(child, "close");
  let log = "";
  const address = await new Promise<string>((resolve, reject) => {
    let listening: string | undefined;
    createInterface({ input: child.stderr }).on("line", (line) => {
      log += `${line}\n`;
      if (line.includes('"msg":"Listening on"')) listening = /"address":"([^"]+)"/.exec(line)?.[1];
      // Until then, it listens but answers "Service Unavailable".
      if (line.includes('"msg":"Server is ready') && listening !== undefined) resolve(listening);
    });
    void closed.then(([code]) => reject(new Error(`prometheus ended with ${code}: ${log}`)));
  });
  const ask = async (path: string): Promise<unknown> => (await fetch(`http://${address}${path}`)).json();
  return {
    listAlerts: async (...states) => {
      const { data } = (await ask("/api/v1/alerts")) as AlertsAnswer;
      return data.alerts.flatMap(({ state, labels }) =>
        states.some((one) => one === state) ? [labels.alertname ?? ""] : [],
      );
    },
    listTargets: async () => {
      const { data } = (await ask("/api/v1/targets")) as TargetsAnswer;
      return Object.fromEntries(
        data.activeTargets.map(({ labels, health, lastError }) => [
          labels.instance ?? "",
          health === "up" ? "" : `${health}: ${lastError}`,
        ]),
      );
    },
    stop: async () => {
      child.kill("SIGTERM");
      await closed;
    },
  };
}
