/** What the client prints: text for people, or JSON for programs. */
import { type DescMessage, type MessageShape, type Registry, toJsonString } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

/** Prints on standard output. */
export interface Output {
  readonly isJson: boolean;
  /** Prints a message as JSON; else what `text` makes of it. */
  answer<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>, text: () => string): void;
  /** Prints something of our own as JSON; else a text. */
  tell(record: Readonly<Record<string, unknown>>, text: string): void;
  /** Prints a message as JSON, whatever was asked for. */
  json<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>, registry?: Registry): void;
  print(text: string): void;
}

/** Makes the output of one run. */
export function createOutput(isJson: boolean, write: (text: string) => void): Output {
  const print = (text: string): void => write(`${text}\n`);
  const json: Output["json"] = (desc, message, registry) =>
    print(toJsonString(desc, message, { alwaysEmitImplicit: true, ...(registry && { registry }) }));
  const show = (text: string): void => print(harmless(text));
  return {
    isJson,
    answer: (desc, message, text) => (isJson ? json(desc, message) : show(text())),
    tell: (record, text) => (isJson ? print(JSON.stringify(record)) : show(text)),
    json,
    print: show,
  };
}

/** Replaces what would steer a terminal: names and data may be anybody's. */
export function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, "\u{fffd}");
}

/** Lines of columns, as wide as their widest cell. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headers, ...rows].map((row) => row.map((cell) => cell.replaceAll("\n", " ")));
  const widths = headers.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** A table of a row for each item; if there is none, a sentence that says so. */
export function listing<Item>(
  none: string,
  headers: readonly string[],
  items: readonly Item[],
  cellsOf: (item: Item) => readonly string[],
): string {
  return items.length === 0 ? none : table(headers, items.map(cellsOf));
}

/** Lines of a name and a value; a value that is undefined has none. */
export function facts(pairs: Readonly<Record<string, string | undefined>>): string {
  const known = Object.entries(pairs).filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

/** What a list says of a record; of one that somebody changed in the store, that alone. */
export function unlessDamaged({ damaged }: { readonly damaged?: boolean | undefined }, text: string): string {
  return damaged ? "DAMAGED: somebody changed it" : text;
}

/** A time for people: RFC 3339 in UTC, to the second. */
export function time(timestamp: Timestamp | undefined): string {
  return timestamp === undefined
    ? ""
    : timestampDate(timestamp)
        .toISOString()
        .replace(/\.\d+Z$/, "Z");
}

/** "3,309 bytes". */
export function bytes(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "byte" : "bytes"}`;
}

/** "1 key", "2 keys". */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
