/** Reads a Schemathesis report: one JSON object per line; ScenarioFinished contains the calls and checks. */
import type { AcceptedFinding } from "./schemathesis-exceptions.ts";

/** A check that a response failed. */
export interface Finding {
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

export interface Report {
  readonly findings: readonly Finding[];
  readonly calls: number;
  readonly operations: ReadonlySet<string>;
}

export function readReport(text: string): Report {
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
export function isAccepted(finding: Finding, accepted: readonly AcceptedFinding[]): boolean {
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
