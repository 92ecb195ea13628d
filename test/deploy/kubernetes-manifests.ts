/** Renders the chart, and parses the result with the Kubernetes types. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import { type Result, run } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { deployFolder } from "./unit-file.ts";

export const chart = join(deployFolder, "helm/qsp");
/** The oldest version that Chart.yaml accepts. A helm installed with Go would assume a much older one. */
const kubeVersion = ["--kube-version", "1.30.0"];

/** Renders the chart for the release "trial" in the namespace "crypto". */
export function renderChart(args: readonly string[]): Promise<Result> {
  return run("helm", ["template", "trial", chart, "--namespace", "crypto", ...kubeVersion, ...args]);
}

/** Lints the chart with helm. */
export function lintChart(): Promise<Result> {
  return run("helm", ["lint", "--strict", ...kubeVersion, chart]);
}

/**
 * Builds test/interop/clients/go-manifests.
 *
 * @returns its path
 */
export function buildManifestReader(atEnd: (remove: () => void) => void): string {
  const program = join(makeTemporaryDirectory(atEnd), "manifests");
  const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], {
    cwd: join(import.meta.dirname, "../interop/clients/go-manifests"),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`go build failed: ${stderr}`);
  return program;
}

/**
 * Parses objects strictly.
 *
 * @returns the version, kind and name of each
 */
export async function readStrictly(program: string, manifests: string): Promise<string[]> {
  const { stdout, stderr, code } = await run(program, [], manifests);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.trim().split("\n");
}
