import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { isMissing, run } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
const suite = "connectconformance";

/** The compressions of this run. Brotli takes the same path as gzip and adds half as many cases again. */
const compression = process.env.QSP_TEST_LONG === "1" ? "both" : "gzip";
const brotli = compression === "both" ? ["COMPRESSION_BR"] : [];

/**
 * The only difference between the suite and our contract, in the suite's own words.
 *
 * Our contract requires a google.rpc.ErrorInfo in the details of every error. The suite expects only the details of its
 * handler, and cannot resolve our type. (connectrpc/conformance, results.go, checkError, leaves open whether to be more
 * lenient.) Code, message, headers and trailers still count.
 */
const errorInfoComplaints = [
  /^actual error contain 1 details; expecting 0$/,
  /^connect error JSON: details\[0\]: could not check debug data because message type "google\.rpc\.ErrorInfo" could not be resolved: /,
];

/**
 * The suite's complaint about a call that took longer than expected to reach its handler, because the machine is busy.
 * Such a case must pass when it runs alone.
 */
const lateComplaint = /^server echoed back a timeout \(\d+ ms\) that did not match expected \(\d+ ms\)$/;

/** The suites whose errors come from the server itself: only their cases may have that difference. */
const serverErrors = /^(Timeouts|Server Message Size|((Connect|gRPC|gRPC-Web) )?Unexpected Requests)\//;

/** Summary of a run of the suite. */
interface Outcome {
  readonly total: number;
  readonly passed: number;
  /** Test cases that differ only in the ErrorInfo. */
  readonly errorInfoOnly: readonly string[];
  /** Test cases that were only late. */
  readonly late: readonly string[];
  /** Other failures, with the suite's complaints. */
  readonly failures: readonly string[];
}

/** Parses the suite's output: "FAILED: name:" with indented complaints, and the counts at the end. */
function readOutcome(output: string): Outcome {
  const [, total = "0", passed = "0"] = /^Total cases: (\d+)\n(\d+) passed, \d+ failed$/m.exec(output) ?? [];
  const failed = [...output.matchAll(/^FAILED: (.*):\n((?:\t.*\n)*)/gm)].map(([, name = "", text = ""]) => ({
    name,
    complaints: text.split("\n").flatMap((line) => line.replace(/^[\t;\s]+/, "") || []),
  }));
  const isErrorInfoOnly = ({ name, complaints }: (typeof failed)[number]): boolean =>
    serverErrors.test(name) &&
    complaints.length > 0 &&
    complaints.every((complaint) => errorInfoComplaints.some((pattern) => pattern.test(complaint)));
  const isLate = ({ complaints }: (typeof failed)[number]): boolean =>
    complaints.length > 0 && complaints.every((complaint) => lateComplaint.test(complaint));
  return {
    total: Number(total),
    passed: Number(passed),
    errorInfoOnly: failed.filter(isErrorInfoOnly).map(({ name }) => name),
    late: failed.filter(isLate).map(({ name }) => name),
    failures: failed
      .filter((failure) => !isErrorInfoOnly(failure) && !isLate(failure))
      .map(({ name, complaints }) => [name, ...complaints].join("\n  ")),
  };
}

/** Maximum repeats of a test case: a call may take 200 ms, which a busy machine may exceed more than once. */
const maxRuns = 10;

/** Repeats test cases one after another, and returns how many pass. */
async function countPassed(
  names: readonly string[],
  runSuite: (...flags: string[]) => Promise<Outcome>,
): Promise<number> {
  const passesAlone = async (name: string): Promise<boolean> => {
    for (let i = 0; i < maxRuns; i += 1)
      if ((await runSuite("--run", name, "--parallel", "1", "--max-servers", "1")).passed === 1) return true;
    return false;
  };
  let count = 0;
  for (const name of names) if (await passesAlone(name)) count += 1;
  return count;
}

/** Builds the descriptors of the suite's protos, which come with the Go module of the same version. */
async function buildDescriptorSet(path: string): Promise<void> {
  const version = (await run(suite, ["--version"])).stdout.trim().split(" ")[1];
  const module = await run("go", ["mod", "download", "-json", `connectrpc.com/conformance@${version}`]);
  const { Dir: directory } = JSON.parse(module.stdout) as { Dir?: string };
  if (directory === undefined) throw new Error(`go has no protos of ${suite} ${version}: ${module.stdout}`);
  const buf = join(root, "node_modules/@bufbuild/buf/bin/buf");
  const built = await run(process.execPath, [buf, "build", join(directory, "proto"), "--output", path]);
  if (built.code !== 0) throw new Error(`buf cannot build the protos of ${suite}: ${built.stderr}`);
}

describe.skipIf(isMissing(suite) || isMissing("go"))("Connect's conformance suite, in server mode", () => {
  const directory = makeTemporaryDirectory(afterAll);
  const descriptorSet = join(directory, "conformance.binpb");

  beforeAll(() => buildDescriptorSet(descriptorSet), 60_000);

  it.each([
    // [protocol, test cases of v1.0.5]
    ["PROTOCOL_CONNECT", { gzip: 757, both: 1122 }],
    ["PROTOCOL_GRPC", { gzip: 524, both: 688 }],
    ["PROTOCOL_GRPC_WEB", { gzip: 609, both: 898 }],
  ])("passes for %s, over HTTP/1.1 and HTTP/2", { timeout: 900_000 }, async (protocol, totals) => {
    const total = totals[compression];
    const features = {
      protocols: [protocol],
      versions: ["HTTP_VERSION_1", "HTTP_VERSION_2"],
      codecs: ["CODEC_PROTO", "CODEC_JSON"],
      compressions: ["COMPRESSION_IDENTITY", "COMPRESSION_GZIP", ...brotli],
      // No TLS: Envoy terminates it in front of the server.
      supportsTls: false,
      // Connect for Node answers with 505: HTTP/1.1 does not guarantee full duplex.
      supportsHalfDuplexBidiOverHttp1: false,
      supportsConnectGet: true,
      supportsMessageReceiveLimit: true,
    };
    const config = join(directory, `${protocol}.yaml`);
    writeFileSync(config, JSON.stringify({ features }));
    const server = [process.execPath, join(import.meta.dirname, "conformance-server.ts"), descriptorSet];

    const runSuite = async (...flags: string[]) => {
      const args = ["--mode", "server", "--conf", config, ...flags, "--", ...server];
      const { stdout, stderr } = await run(suite, args);
      return { ...readOutcome(stdout), stderr };
    };

    const { stderr, ...outcome } = await runSuite();
    const { errorInfoOnly, late } = outcome;
    const passed = outcome.passed + (await countPassed(late, runSuite));
    console.log(
      `${protocol}: ${outcome.total} test cases, ${passed} passed, ${errorInfoOnly.length} differ by our ErrorInfo alone`,
    );
    // If the server does not start, all cases fail: the first few are enough.
    expect(outcome.failures.slice(0, 10), stderr).toEqual([]);
    expect(outcome.total, stderr).toBe(total);
    expect(passed + errorInfoOnly.length).toBe(total);
  });
});
