/** Files in which the client keeps its identity for one server: JSON, mode 0600. */
import { existsSync } from "node:fs";
import { usageError } from "../exit-codes.ts";
import { readText } from "./read.ts";
import { openNewPrivateFile, replacePrivateFile, writeTo } from "./write.ts";

/** The fields that all state files share. */
interface State {
  /** The server that the state belongs to. */
  readonly url: string;
}

/** A kind of state file. */
export interface StateKind<T extends State> {
  /** For error messages, such as "device". */
  readonly noun: string;
  /** The verb that creates the file, such as "qsp device register". */
  readonly maker: string;
  readonly isState: (value: Partial<Record<keyof T, unknown>>) => boolean;
}

/** @throws CliError for a damaged file or one that belongs to a different server */
export function readState<T extends State>(path: string, url: string, kind: StateKind<T>): T {
  if (!existsSync(path)) throw usageError(`${path} does not exist; ${kind.maker} creates one`);
  const state = parse(readText(path), kind);
  if (state === undefined)
    throw usageError(`${path} does not contain a ${kind.noun}; ${kind.maker} creates one`);
  if (state.url !== url)
    throw usageError(
      `${path} belongs to a ${kind.noun} at ${state.url}, not at ${url}; use --url ${state.url}`,
    );
  return state;
}

export function writeState<T extends State>(path: string, state: T): void {
  replacePrivateFile(path, formatState(state));
}

/**
 * Reserves a state file, because the key that the server registers meanwhile must not be lost. The file disappears if the
 * client ends, or `register` fails, before the state is kept.
 *
 * @throws CliError if the file exists or cannot be written
 */
export async function withNewState<Result>(
  path: string,
  register: (keep: (state: State & Readonly<Record<string, unknown>>) => void) => Promise<Result>,
): Promise<Result> {
  const file = openNewPrivateFile(path);
  try {
    return await register((state) => writeTo(file, formatState(state)));
  } finally {
    file.discard();
  }
}

/** Returns the content of a state file. */
export function formatState(state: State): string {
  return `${JSON.stringify(state, undefined, 2)}\n`;
}

export function areTexts(...values: readonly unknown[]): boolean {
  return values.every((value) => typeof value === "string");
}

function parse<T extends State>(text: string, { isState }: StateKind<T>): T | undefined {
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found === "object" && found !== null && isState(found)) return found as T;
  } catch {
    // Treated like any other invalid content.
  }
  return undefined;
}
