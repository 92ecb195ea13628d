import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { isToolMissing, pythonTool } from "./openapi-tools.ts";
import { acceptedFindings } from "./schemathesis-exceptions.ts";
import { isAccepted, readReport } from "./schemathesis-report.ts";

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
