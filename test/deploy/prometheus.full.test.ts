/**
 * The configuration of deploy/, in a real Prometheus that scrapes real servers. promtool.slow.test.ts triggers all
 * alerts.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parse, stringify } from "yaml";
import { isMissing } from "../interop/tools.ts";
import { findPostgres, startPostgres } from "../support/postgres-server.ts";
import { runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { renderQuickRules } from "./alert-rules.ts";
import { startPrometheus } from "./run-prometheus.ts";
import { readDeployed } from "./unit-file.ts";

const isAbsent =
  isMissing("prometheus") || (process.env.QSP_TEST_REQUIRE_ALL !== "1" && findPostgres() === undefined);
/** Timeout in milliseconds for all alerts of a step, which take a few seconds. */
const alertTimeoutMs = 180_000;
/** Writes the configuration that we ship, with test targets and short intervals. */
function configure(
  directory: string,
  targets: readonly string[],
  tokenServer: string,
  secretFile: string,
): string {
  const config = parse(readDeployed("prometheus/prometheus.yaml"));
  config.global = { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "500ms" };
  const [job] = config.scrape_configs;
  job.static_configs = [{ targets }];
  job.oauth2.token_url = job.oauth2.token_url.replace("http://qsp-1:8080", tokenServer);
  job.oauth2.client_secret_file = secretFile;
  writeFileSync(join(directory, "alerts.yaml"), renderQuickRules());
  const path = join(directory, "prometheus.yaml");
  writeFileSync(path, stringify(config));
  return path;
}

describe.skipIf(isAbsent)(`Prometheus${isAbsent ? " (needs prometheus and PostgreSQL)" : ""}`, () => {
  it("gets a token, scrapes servers, and fires alerts for their problems", {
    timeout: 720_000,
  }, async () => {
    const directory = makeTemporaryDirectory();
    const dataDir = makeTemporaryDirectory();
    expect((await runToEnd(["store", "init", "--data-dir", dataDir])).code).toBe(0);
    const rights = ["--role", "auditor", "--scope", "metrics.read"];
    const added = await runToEnd(["client", "add", "prometheus", ...rights, "--data-dir", dataDir]);
    expect(added.code).toBe(0);
    const secretFile = join(directory, "prometheus.secret");
    writeFileSync(secretFile, added.stdout);
    const guarded = await startServer({
      dataDir,
      args: ["--auth", "token", "--issuer-url", "http://localhost:8080"],
    });
    onTestFinished(() => void guarded.stop());
    const postgres = await startPostgres({ durable: false });
    onTestFinished(() => postgres.close());
    const onPostgres = await startServer({
      dataDir: makeTemporaryDirectory(),
      env: { QSP_DATABASE_URL: await postgres.createDatabase() },
    });
    onTestFinished(() => void onPostgres.stop());
    const targets = [guarded.authority, onPostgres.authority];
    const prometheus = await startPrometheus(
      configure(directory, targets, guarded.url, secretFile),
      directory,
    );
    onTestFinished(() => prometheus.stop());

    // Before the first scrape, no server has answered. A pending alert may still fire afterwards.
    const findTrouble = async () => [
      ...Object.entries(await prometheus.listTargets()).filter(([, error]) => error !== ""),
      ...(await prometheus.listAlerts("pending", "firing")),
    ];
    await vi
      .waitUntil(
        async () =>
          Object.keys(await prometheus.listTargets()).length === targets.length &&
          (await findTrouble()).length === 0,
        { timeout: alertTimeoutMs, interval: 200 },
      )
      .catch(async () => expect(await findTrouble()).toEqual([]));
    const fired = new Set<string>();
    const untilFired = (wanted: readonly string[], act: () => Promise<unknown>) =>
      vi
        .waitUntil(
          async () => {
            await act();
            for (const alert of await prometheus.listAlerts("firing")) fired.add(alert);
            return wanted.every((alert) => fired.has(alert));
          },
          { timeout: alertTimeoutMs, interval: 200 },
        )
        .catch(() => expect([...fired]).toEqual(expect.arrayContaining([...wanted])));

    await untilFired(["QspLoginsRefused", "QspTokensRefused", "QspCallsRefused"], async () => {
      const body = JSON.stringify({ username: "nobody", password: "a wrong password of some length" });
      const headers = { "content-type": "application/json" };
      await fetch(`${guarded.url}/api/auth/token`, { method: "POST", headers, body });
      await fetch(`${guarded.url}/api/kms/keys`);
      await fetch(`${guarded.url}/api/kms/keys`);
    });
    await postgres.stop();
    await untilFired(["QspUnavailable"], () => fetch(`${onPostgres.url}/api/kms/keys`));
    await onPostgres.stop("SIGKILL");
    await untilFired(["QspServerDown"], async () => {});
    expect(fired).not.toContain("QspAllServersDown");
    await guarded.stop();
    await untilFired(["QspAllServersDown"], async () => {});
  });
});
