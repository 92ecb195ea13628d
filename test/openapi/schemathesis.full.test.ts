import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { isToolMissing, pythonTool } from "./openapi-tools.ts";
import { type AcceptedFinding, acceptedFindings } from "./schemathesis-exceptions.ts";

const atEnd = endAfterAll();

/**
 * With this seed and number of examples, a run makes about 3,000 calls, most of them in the "coverage" phase.
 */
const maxExamples = "4";

/** A run takes three minutes. */
const toolTimeoutMs = 2_700_000;
const program = pythonTool("schemathesis");
const isSkipped = isToolMissing(program);

/** Runs the program in a folder, where it leaves its files. It exits with 1 for any finding. */
function runIn(cwd: string, args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      [...args],
      { cwd, maxBuffer: 256 * 1024 * 1024, timeout: toolTimeoutMs },
      (error, stdout, stderr) => {
        if (error !== null && error.code !== 1) reject(error);
        else resolve({ stdout, stderr });
      },
    );
  });
}

describe.skipIf(isSkipped)("Schemathesis (needs schemathesis)", { timeout: toolTimeoutMs + 60_000 }, () => {
  it("finds no mismatch between description and server beyond the accepted ones", async () => {
    const server = await startServer({
      dataDir: makeTemporaryDirectory(atEnd),
      // An SLH-DSA signature can take longer than the default 30 seconds on a busy machine.
      args: ["--max-call-ms", "300000", "--issuer-url", "https://id.example.com"],
    });
    atEnd(async () => void (await server.stop()));
    const directory = makeTemporaryDirectory(atEnd);
    const report = join(directory, "events.ndjson");
    const { stdout, stderr } = await runIn(directory, [
      ...["--config-file", join(import.meta.dirname, "schemathesis.toml")],
      ...["run", `${server.url}/openapi.json`],
      ...["--phases", "examples,coverage,fuzzing", "--checks", "all", "--max-examples", maxExamples],
      // It fills bodies with parts of earlier responses, most of which are too short for a VPN packet.
      ...["--suppress-health-check", "filter_too_much"],
      ...["--report", "ndjson", "--report-ndjson-path", report, "--output-sanitize", "false", "--no-color"],
    ]);
    expect(stderr).toBe("");
    // Errors of the tool itself, such as a schema for which it cannot create an example.
    expect(stdout).not.toMatch(/^Errors:/m);
    const { findings, calls, operations } = readReport(readFileSync(report, "utf8"));
    expect(findings.filter((finding) => !isAccepted(finding, acceptedFindings))).toEqual([]);
    expect(operations.size).toBeGreaterThan(70);
    expect(calls).toBeGreaterThan(2000);
  });
});

/** A check that a response failed. */
interface Finding {
  readonly check: string;
  /** "POST /api/kms/sign". */
  readonly operation: string;
  readonly request: string;
  readonly status: number | undefined;
  readonly response: string;
}

type Content = { readonly $base64?: string } | null;

interface Interaction {
  readonly request: { readonly method: string; readonly uri: string; readonly body?: Content };
  readonly response: {
    readonly status_code: number;
    readonly content?: Content;
    readonly body?: Content;
  } | null;
}

interface Recorder {
  readonly label: string;
  /** Absent if a scenario made no call. */
  readonly checks?: Readonly<Record<string, readonly { readonly name: string; readonly status: string }[]>>;
  readonly interactions?: Readonly<Record<string, Interaction>>;
}

interface Report {
  readonly findings: readonly Finding[];
  readonly calls: number;
  readonly operations: ReadonlySet<string>;
}

function readReport(text: string): Report {
  const recorders = text
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line): Recorder[] => JSON.parse(line).ScenarioFinished?.recorder ?? []);
  return {
    findings: recorders.flatMap(listFindings),
    calls: recorders.reduce((sum, { interactions }) => sum + Object.keys(interactions ?? {}).length, 0),
    operations: new Set(recorders.map(({ label }) => label)),
  };
}

function listFindings({ label, checks = {}, interactions = {} }: Recorder): Finding[] {
  return Object.entries(checks).flatMap(([id, results]) =>
    results
      .filter(({ status }) => status === "failure")
      .map(({ name }): Finding => {
        const { request, response } = interactions[id] ?? { request: undefined, response: null };
        return {
          check: name,
          operation: label,
          request: `${request?.method} ${request?.uri} ${textOf(request?.body)}`,
          status: response?.status_code,
          response: textOf(response?.content ?? response?.body),
        };
      }),
  );
}

function textOf(content: Content | undefined): string {
  return content?.$base64 === undefined ? "" : Buffer.from(content.$base64, "base64").toString();
}

/** Returns whether a finding is accepted. */
function isAccepted(finding: Finding, accepted: readonly AcceptedFinding[]): boolean {
  const error = readError(finding.response);
  return accepted.some(
    ({ check, operation, request, status, code, reason, fields }) =>
      check === finding.check &&
      (status ?? finding.status) === finding.status &&
      (operation === undefined || operation.test(finding.operation)) &&
      (request === undefined || request.test(finding.request)) &&
      (code ?? error.code) === error.code &&
      (reason ?? error.reason) === error.reason &&
      (fields === undefined || fields.test(error.field)),
  );
}

function readError(text: string): { code: string; reason: string; field: string } {
  try {
    const json = JSON.parse(text);
    // Services with Google's conventions name the code `status`.
    const { code, details } = json.error ? { ...json.error, code: json.error.status } : json;
    const { reason, metadata } = details[0];
    return { code, reason, field: metadata?.field ?? "" };
  } catch {
    return { code: "", reason: "", field: "" };
  }
}
