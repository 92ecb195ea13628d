/** Colours on a terminal (ECMA-48, section 8.3.117), and none elsewhere. */
import { styleText } from "node:util";

/** The styles of text. */
export type Style = "good" | "bad" | "warning" | "heading" | "quiet";

/** Colours a text, or returns it as it is. */
export type Paint = (style: Style, text: string) => string;

const formats = {
  good: "green",
  bad: "red",
  warning: "yellow",
  heading: "bold",
  quiet: "dim",
} as const satisfies Record<Style, Parameters<typeof styleText>[0]>;

/** The stream that the text goes to. */
export interface ColorTarget {
  readonly isTTY?: boolean | undefined;
}

/**
 * Tells whether text for a stream has colours: NO_COLOR (no-color.org) turns them off, FORCE_COLOR turns them on, also
 * where there is no terminal; otherwise a terminal that is not "dumb" has them.
 */
export function hasColors(
  { isTTY }: ColorTarget,
  env: Readonly<Record<string, string | undefined>> = process.env,
): boolean {
  if (env.NO_COLOR) return false;
  // Node.js takes an empty FORCE_COLOR for 1 as well.
  if (env.FORCE_COLOR !== undefined) return !["0", "false"].includes(env.FORCE_COLOR);
  return isTTY === true && env.TERM !== "dumb";
}

/** Creates the painter of text for a stream. */
export function createPaint(
  target: ColorTarget,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Paint {
  if (!hasColors(target, env)) return (_, text) => text;
  return (style, text) => styleText(formats[style], text, { validateStream: false });
}

/** Colours the headings of a help text. */
export function colorHelp(text: string, paint: Paint): string {
  return text
    .replace(/^[A-Z].*:$/gm, (line) => paint("heading", line))
    .replace(/^usage: .*$/m, (line) => paint("heading", line));
}

/** Colours the header of a table, and the lines and words that say yes or no. */
export function colorText(text: string, paint: Paint): string {
  return text
    .replace(/^[A-Z][A-Z/-]*(?: {2,}[A-Z][A-Z/-]*)+$/m, (line) => paint("heading", line))
    .replace(/^.*(?:\bNOT valid\b|\bis (?:broken|damaged)\b).*$/gm, (line) => paint("bad", line))
    .replace(/^(?!.*NOT valid)(?:Valid\b.*|.*\b(?:is|are) valid\b.*)$/gm, (line) => paint("good", line))
    .replace(/(?<= {2})(?:UP|ACTIVE)$/gm, (word) => paint("good", word))
    .replace(/(?<= {2})(?:DOWN|DESTROYED)$/gm, (word) => paint("bad", word));
}
