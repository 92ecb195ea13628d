/** Runs Prometheus on a free port, and stands in for servers with problems. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { nameSeries, type Series } from "./alert-rules.ts";

/** A running Prometheus. */
export interface RunningPrometheus {
  /** The names of the firing alerts. */
  listFiring(): Promise<string[]>;
  /** The names of the firing and pending alerts. */
  listActive(): Promise<string[]>;
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
  const listAlerts = async (states: readonly string[]): Promise<string[]> => {
    const { data } = (await ask("/api/v1/alerts")) as AlertsAnswer;
    return data.alerts.flatMap(({ state, labels }) =>
      states.includes(state) ? [labels.alertname ?? ""] : [],
    );
  };
  return {
    listFiring: () => listAlerts(["firing"]),
    listActive: () => listAlerts(["pending", "firing"]),
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

/** A server that exposes prepared metrics at /metrics. */
export interface StandIn {
  /** "127.0.0.1:port" */
  readonly authority: string;
  stop(): Promise<void>;
}

/** Starts a stand-in with these time series, which a test cannot produce on demand in a real server. */
export async function startStandIn(series: readonly Series[]): Promise<StandIn> {
  const startedMs = performance.now();
  const server = createServer((_request, response) => {
    const seconds = (performance.now() - startedMs) / 1000;
    // Prometheus itself records whether a target is up.
    const exposed = series.filter(({ name }) => name !== "up");
    const lines = exposed.map(
      (one) => `${nameSeries(one)} ${"value" in one ? one.value : one.perSecond * (10 + seconds)}\n`,
    );
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(lines.join(""));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    authority: `127.0.0.1:${port}`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
