/** Formats the error that ends a command: a sentence, or JSON for programs. */
import type { CliError } from "../exit-codes.ts";
import { exitCodes } from "../exit-codes.ts";
import { harmless } from "./output.ts";

/** Codes and reasons of client-side errors, by exit code. */
const ownCauses: Readonly<Record<number, { readonly code: string; readonly reason: string }>> = {
  [exitCodes.no]: { code: "FAILED_PRECONDITION", reason: "NOT_AUTHENTIC" },
  [exitCodes.usage]: { code: "INVALID_ARGUMENT", reason: "INPUT_INVALID" },
  [exitCodes.refused]: { code: "UNKNOWN", reason: "REFUSED" },
  [exitCodes.unreachable]: { code: "UNAVAILABLE", reason: "SERVER_UNREACHABLE" },
  [exitCodes.fault]: { code: "INTERNAL", reason: "BUG" },
};

/** Returns whether a command line requests JSON, even if the command line is invalid. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).includes("--json");
}

/** Formats an error as one line; a bug adds its stack. */
export function formatError(
  { message, exitCode, cause, refusal }: CliError,
  isJson: boolean,
  paint: (text: string) => string = (text) => text,
): string {
  if (isJson) {
    const { code, reason, fieldViolations = [] } = { ...ownCauses[exitCode], ...refusal };
    return `${JSON.stringify({ status: "error", code, reason, message, fieldViolations, exitCode })}\n`;
  }
  const stack = cause instanceof Error ? `${cause.stack}\n` : "";
  return `${paint("qsp:")} ${harmless(message).replaceAll("\n", " ")}\n${stack}`;
}

/** Formats a warning as one line. */
export function formatWarning(
  message: string,
  isJson: boolean,
  paint: (text: string) => string = (text) => text,
): string {
  if (isJson) return `${JSON.stringify({ status: "warning", message })}\n`;
  return `${paint("qsp: warning:")} ${harmless(message).replaceAll("\n", " ")}\n`;
}
