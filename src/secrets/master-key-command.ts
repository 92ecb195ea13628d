/**
 * Runs the program that prints a master key, so that no file has to contain it: `systemd-creds decrypt`,
 * `age -d`, or a client of another key service.
 */
import { spawnSync } from "node:child_process";
import { wipe } from "../crypto/bytes.ts";
import { StorageError } from "../database/store-error.ts";
import { describeSystemError } from "../system-error.ts";

const maxMs = 30_000;
const maxBytes = 1024;

/**
 * Runs a program without a shell and reads the key from its standard output: 64 hexadecimal digits. Nothing
 * that it prints appears in an error or a log.
 *
 * @param setting names the command in errors
 * @throws StorageError; a later start may succeed unless the output is not a key
 */
export function readKeyFromCommand(setting: string, [program = "", ...args]: readonly string[]): string {
  const { error, status, signal, stdout } = spawnSync(program, args, {
    stdio: ["ignore", "pipe", "ignore"],
    timeout: maxMs,
    maxBuffer: maxBytes,
    killSignal: "SIGKILL",
    windowsHide: true,
  });
  try {
    if (error !== undefined) throw failed(setting, describe(program, error));
    if (status !== 0) throw failed(setting, `${program} ended with ${signal ?? `exit code ${status}`}`);
    const text = stdout.toString("latin1").trim();
    if (/^[0-9a-f]{64}$/i.test(text)) return text;
    throw new StorageError(
      `${setting}: ${program} did not print a master key; expected 64 hexadecimal digits and nothing else on standard output`,
    );
  } finally {
    wipe(stdout ?? undefined);
  }
}

function describe(program: string, error: Error & { readonly code?: string }): string {
  if (error.code === "ETIMEDOUT") return `${program} did not end within ${maxMs / 1000} seconds`;
  if (error.code === "ENOBUFS") return `${program} printed more than ${maxBytes} bytes`;
  return `${program} cannot be run: ${describeSystemError(error) ?? error.message}`;
}

function failed(setting: string, what: string): StorageError {
  return new StorageError(`${setting}: ${what}; run the command yourself to see why`, { mayPass: true });
}
