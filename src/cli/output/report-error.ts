/** Reports errors and warnings on standard error: a sentence, or JSON for programs. */
import { type CliError, exitCodes } from "../exit-codes.ts";
import { createPaint, type Style } from "./colors.ts";
import { escapeControls, harmless } from "./output.ts";

/** Codes and reasons of client-side errors, by exit code. */
const ownCauses: Readonly<Record<number, { readonly code: string; readonly reason: string }>> = {
  [exitCodes.no]: { code: "FAILED_PRECONDITION", reason: "NOT_AUTHENTIC" },
  [exitCodes.usage]: { code: "INVALID_ARGUMENT", reason: "INPUT_INVALID" },
  [exitCodes.refused]: { code: "UNKNOWN", reason: "REFUSED" },
  [exitCodes.unreachable]: { code: "UNAVAILABLE", reason: "SERVER_UNREACHABLE" },
  [exitCodes.fault]: { code: "INTERNAL", reason: "BUG" },
};

/**
 * Reports the error that ends a command, as one line; a bug adds its stack.
 *
 * @param args the command line, which may be invalid
 * @returns the exit code
 */
export function reportError(
  { message, exitCode, cause, refusal }: CliError,
  args: readonly string[],
): number {
  const { code, reason, fieldViolations = [] } = { ...ownCauses[exitCode], ...refusal };
  const record = { status: "error", code, reason, message, fieldViolations, exitCode };
  report(record, args, "bad", "qsp:", cause instanceof Error ? `${harmless(cause.stack ?? "")}\n` : "");
  return exitCode;
}

/** Reports a warning, as one line. */
export function reportWarning(message: string, args: readonly string[]): void {
  report({ status: "warning", message }, args, "warning", "qsp: warning:");
}

function report(
  record: { readonly status: string; readonly message: string },
  args: readonly string[],
  style: Style,
  prefix: string,
  rest = "",
): void {
  const end = args.indexOf("--");
  const wantsJson = (end < 0 ? args : args.slice(0, end)).includes("--json");
  const sentence = harmless(record.message).replaceAll("\n", " ");
  const text = `${createPaint(process.stderr)(style, prefix)} ${sentence}\n${rest}`;
  process.stderr.write(wantsJson ? `${escapeControls(JSON.stringify(record))}\n` : text);
}
