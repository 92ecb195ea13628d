/** Prints descriptor options in the protobuf text format. */
import type { DescMessage, Message, Registry } from "@bufbuild/protobuf";
import { toText } from "@bufbuild/protobuf/txtpb";

/** An option as it appears in source: `deprecated`, `(google.api.http)`. */
export interface PrintedOption {
  readonly name: string;
  readonly value: string;
}

/**
 * An option in the text format: its name, in brackets if it is an extension, and a value, which may have
 * several lines.
 */
const option = /^(\[?)([\w.]+)\]?: (\{\n(?: .*\n)*\}|.*)$/gm;

/** Lists the options that are set, with one entry per element of a repeated option. */
export function listOptions(
  schema: DescMessage,
  options: Message | undefined,
  registry: Registry,
): PrintedOption[] {
  if (options === undefined) return [];
  return [...toText(schema, options, { registry }).matchAll(option)].map(
    ([, bracket, name = "", value = ""]) => ({
      name: bracket === "" ? name : `(${name})`,
      value: value.replace(/\n */g, " "),
    }),
  );
}

/** Prints the options after a declaration: ` [deprecated = true]`, or nothing. */
export function inBrackets(options: readonly PrintedOption[]): string {
  return options.length === 0
    ? ""
    : ` [${options.map(({ name, value }) => `${name} = ${value}`).join(", ")}]`;
}
