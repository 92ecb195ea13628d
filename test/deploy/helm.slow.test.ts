/** The chart for Kubernetes, rendered and parsed with the Kubernetes types. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { readConfig } from "../../src/config.ts";
import { isMissing, type Result, run } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { deployFolder } from "./unit-file.ts";

const chart = join(deployFolder, "helm/qsp");
/** The oldest version that Chart.yaml accepts. A helm installed with Go would assume a much older one. */
const kubeVersion = ["--kube-version", "1.30.0"];

/** Renders the chart for the release "trial" in the namespace "crypto". */
function renderChart(args: readonly string[]): Promise<Result> {
  return run("helm", ["template", "trial", chart, "--namespace", "crypto", ...kubeVersion, ...args]);
}

/**
 * Parses objects strictly.
 *
 * @returns the version, kind and name of each
 */
async function readStrictly(program: string, manifests: string): Promise<string[]> {
  const { stdout, stderr, code } = await run(program, [], manifests);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.trim().split("\n");
}

const missing = ["helm", "go"].filter(isMissing);
const needs = missing.length > 0 ? ` (needs ${missing.join(" and ")})` : "";
/** Required values without a default in values.yaml. */
const own = ["--set", "issuerUrl=https://qsp.example.com"];
const everything = [...own, "--set", "serviceMonitor.enabled=true,secrets.tls=qsp-tls"];

/** The part of a Deployment that the tests read. */
interface Pod {
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: object;
  readonly containers: readonly {
    readonly env: readonly { readonly name: string; readonly value?: string }[];
    readonly securityContext: object;
  }[];
}

describe.skipIf(missing.length > 0)(`the chart for Kubernetes${needs}`, () => {
  let reader: string;
  // The first build compiles the Kubernetes types.
  beforeAll(() => {
    reader = join(makeTemporaryDirectory(afterAll), "manifests");
    execFileSync("go", ["build", "-o", reader, "."], {
      cwd: join(import.meta.dirname, "../interop/clients/go-manifests"),
    });
  }, 600_000);

  async function renderPod(args: readonly string[] = own) {
    const { stdout } = await renderChart(args);
    const objects = parseAllDocuments(stdout).map((document) => document.toJS());
    const pod: Pod | undefined = objects.find((one) => one?.kind === "Deployment")?.spec.template.spec;
    const container = pod?.containers[0];
    if (pod === undefined || container === undefined) throw new Error("the chart has no Deployment");
    return { pod, container };
  }

  it("passes helm lint", async () => {
    expect(await run("helm", ["lint", "--strict", ...kubeVersion, chart])).toMatchObject({ code: 0 });
  });

  it("has a Deployment, Services, a PodDisruptionBudget and a NetworkPolicy that an API server can parse", async () => {
    const { stdout } = await renderChart(own);
    expect((await readStrictly(reader, stdout)).sort()).toEqual([
      "apps/v1 Deployment trial-qsp",
      "networking.k8s.io/v1 NetworkPolicy trial-qsp",
      "policy/v1 PodDisruptionBudget trial-qsp",
      "v1 Service trial-qsp",
      "v1 Service trial-qsp-servers",
    ]);
  });

  it("has a ServiceMonitor and TLS if enabled", async () => {
    const { stdout } = await renderChart(everything);
    expect(await readStrictly(reader, stdout)).toContain("monitoring.coreos.com/v1 ServiceMonitor trial-qsp");
    expect(stdout).toContain("scheme: HTTPS");
    expect(stdout).toContain("tokenUrl: https://trial-qsp.crypto.svc:8080/oauth/token");
  });

  it("can be parsed with all optional values", async () => {
    const { stdout } = await renderChart([
      ...everything,
      ...["--set-json", 'networkPolicy.databasePeers=[{"ipBlock":{"cidr":"10.0.0.5/32"}}]'],
      ...["--set-json", "networkPolicy.from=[]"],
      ...["--set-json", 'tolerations=[{"key":"crypto","operator":"Exists"}]'],
      ...["--set-json", 'image.pullSecrets=[{"name":"registry"}]'],
      ...["--set", "nodeSelector.zone=a,podAnnotations.team=crypto,service.annotations.team=crypto"],
    ]);
    expect(await readStrictly(reader, stdout)).toHaveLength(6);
  });

  it("could not be parsed with an unknown field", async () => {
    const { stdout } = await renderChart(own);
    const misspelt = stdout.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem");
    expect((await run(reader, [], misspelt)).stderr).toContain("readOnlyRootFileSystem");
  });

  it("runs without root, privileges, a writable file system or a cluster token", async () => {
    const { pod, container } = await renderPod();
    expect(pod.automountServiceAccountToken).toBe(false);
    const seccompProfile = { type: "RuntimeDefault" };
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532, seccompProfile });
    expect(container.securityContext).toEqual({
      ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true },
      capabilities: { drop: ["ALL"] },
    });
  });

  it("gives the server settings that it accepts, and time to finish its calls", async () => {
    const args = ["--set", "settings.QSP_MAX_CALLS=2000", ...everything];
    const { pod, container } = await renderPod(args);
    const env = container.env.map(({ name, value = "postgres://qsp:qsp@db/qsp" }) => [name, value]);
    const config = readConfig([], Object.fromEntries(env));
    expect(config).toMatchObject({ host: "0.0.0.0", auth: "token", maxCalls: 2000 });
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(config.maxDrainMs + 5000);
  });

  it("writes large numbers from a values file unchanged", async () => {
    const file = join(makeTemporaryDirectory(), "values.yaml");
    writeFileSync(file, "settings:\n  QSP_MAX_BUFFERED_BYTES: 536870912\n  QSP_MAX_CALLS: 0\n");
    const { container } = await renderPod([...own, "--values", file]);
    const env = new Map(container.env.map(({ name, value }) => [name, value]));
    expect([env.get("QSP_MAX_BUFFERED_BYTES"), env.get("QSP_MAX_CALLS")]).toEqual(["536870912", "0"]);
  });

  it("lets servers reach additional destinations, and Prometheus verify the certificate, as configured", async () => {
    const { stdout } = await renderChart([
      ...everything,
      ...["--set-json", 'networkPolicy.egress=[{"ports":[{"port":4317,"protocol":"TCP"}]}]'],
      ...["--set", "serviceMonitor.tlsConfig.serverName=qsp.example.com"],
    ]);
    const manifests = parseAllDocuments(stdout).map((document) => document.toJS());
    const find = (kind: string) => manifests.find((one) => one?.kind === kind);
    expect(find("NetworkPolicy").spec.egress).toContainEqual({ ports: [{ port: 4317, protocol: "TCP" }] });
    const [{ tlsConfig, oauth2 }] = find("ServiceMonitor").spec.endpoints;
    for (const config of [tlsConfig, oauth2.tlsConfig])
      expect(config).toEqual({ serverName: "qsp.example.com" });
  });

  it("requires the issuer URL if there are several servers, but not for a single server", async () => {
    const { code, stderr } = await renderChart([]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("issuerUrl is missing: ")]);
    const { container } = await renderPod(["--set", "replicas=1"]);
    expect(container.env.map(({ name }) => name)).not.toContain("QSP_ISSUER_URL");
  });

  it.each([
    ["an unknown value", "replica=3"],
    ["zero servers", "replicas=0"],
    ["a secret as a setting", "settings.QSP_MASTER_KEY=00"],
    ["an open server", "settings.QSP_AUTH=open"],
    ["an issuer with a path", "issuerUrl=https://qsp.example/path"],
    ["an invalid digest", "image.digest=latest"],
  ])("rejects %s", async (_what, value) => {
    const { code, stderr } = await renderChart([...own, "--set", value]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("values don't meet the specifications")]);
  });
});
