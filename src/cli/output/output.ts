/** Prints text for people or JSON for programs. */
import { type DescMessage, type MessageShape, type Registry, toJsonString } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { exitCodes } from "../exit-codes.ts";

/** Prints to standard output. */
export interface Output {
  readonly isJson: boolean;
  /**
   * Prints a message as JSON, or the result of `text`.
   *
   * @param isYes whether the answer is yes
   * @returns the exit code
   */
  answer<Desc extends DescMessage>(
    desc: Desc,
    message: MessageShape<Desc>,
    text: () => string,
    isYes?: boolean,
  ): number;
  /** Like `answer`, for a record that is not a message. */
  report(record: Readonly<Record<string, unknown>>, text: string, isYes?: boolean): number;
  /** Prints a message as JSON in both modes. */
  json<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>, registry?: Registry): void;
  print(text: string): void;
}

/**
 * Creates the output of one run.
 *
 * @param onAnswer receives the exit code of an answer before it is printed: printing may end the client
 */
export function createOutput(
  isJson: boolean,
  write: (text: string) => void,
  color: (text: string) => string = (text) => text,
  onAnswer: (exitCode: number) => void = () => {},
): Output {
  const print = (text: string): void => write(`${text}\n`);
  const json: Output["json"] = (desc, message, registry) =>
    print(
      escapeControls(
        toJsonString(desc, message, { alwaysEmitImplicit: true, ...(registry && { registry }) }),
      ),
    );
  // Control characters are removed before colours add their own.
  const show = (text: string): void => print(color(harmless(text)));
  const decide = (isYes: boolean): number => {
    const exitCode = isYes ? exitCodes.done : exitCodes.no;
    onAnswer(exitCode);
    return exitCode;
  };
  return {
    isJson,
    answer(desc, message, text, isYes = true) {
      const exitCode = decide(isYes);
      if (isJson) json(desc, message);
      else show(text());
      return exitCode;
    },
    report(record, text, isYes = true) {
      const exitCode = decide(isYes);
      if (isJson) print(escapeControls(JSON.stringify(record)));
      else show(text);
      return exitCode;
    },
    json,
    print: (text) => print(harmless(text)),
  };
}

/**
 * Replaces terminal control characters, characters that reorder text, and invisible characters: names and data are
 * untrusted. Joiners stay: scripts and emoji need them.
 */
export function harmless(text: string): string {
  return text.replace(/(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}

/** Characters that look like a space: separators, the Hangul fillers and the Braille blank. */
const blank = /[\p{Zs}\u115f\u1160\u3164\uffa0\u2800]/gu;
/** Blanks, with the characters between them that have no width. */
const blanks = /[\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/**
 * Formats a cell of a row: on one line, and with blanks at its ends or next to each other made visible. A
 * terminal wraps long rows, so blanks in an ID could end one row and begin a forged one.
 */
export function cell(text: string): string {
  const line = text.replaceAll("\n", " ");
  return line.replace(blanks, (run, start: number) => {
    const isAtEnd = start === 0 || start + run.length === line.length;
    return isAtEnd || (run.match(blank)?.length ?? 0) > 1 ? run.replace(blank, "\u{2423}") : run;
  });
}

/** Escapes control characters that JSON may contain unescaped: a terminal interprets them. */
export function escapeControls(json: string): string {
  return json.replace(/[\x7f-\x9f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

/** Formats a table; each column is as wide as its widest cell. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headers, ...rows].map((row) => row.map(cell));
  // No Math.max(...widths): a server may send more rows than a call can take as arguments.
  const widths = headers.map((_, column) =>
    lines.reduce((width, line) => Math.max(width, line[column]?.length ?? 0), 0),
  );
  return lines
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Formats lines of labels and values; leaves out empty and undefined values. */
export function facts(pairs: Readonly<Record<string, string | undefined>>): string {
  const known = Object.entries(pairs).filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(...known.map(([name]) => name.length));
  // A multi-line value must not look like several facts.
  const indent = `\n${" ".repeat(width + 2)}`;
  return known.map(([name, value]) => `${name.padEnd(width)}  ${value?.replaceAll("\n", indent)}`).join("\n");
}

/** Formats a time for people: RFC 3339 in UTC, to the second. */
export function time(timestamp: Timestamp | undefined): string {
  if (timestamp === undefined) return "";
  const date = timestampDate(timestamp);
  return Number.isNaN(date.getTime()) ? "not a time" : date.toISOString().replace(/\.\d+Z$/, "Z");
}

/** Shows the key that a name stood for, which verification needs after a rotation; empty if its ID was given. */
export function keyBehind(handle: string | undefined, keyId: string | undefined): string {
  return keyId === undefined || keyId === handle ? "" : ` (${keyId})`;
}

/** "3,309 bytes". */
export function bytes(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "byte" : "bytes"}`;
}

/** Formats a count: "1 key", "2 keys", or "2 entries" with an explicit plural. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}
