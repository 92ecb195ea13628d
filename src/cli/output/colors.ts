/** Colours for terminals (ECMA-48, section 8.3.117). */
import { styleText } from "node:util";

/** Text styles. */
export type Style = "good" | "bad" | "warning" | "heading" | "quiet";

/** Colours a text, or returns it unchanged. */
type Paint = (style: Style, text: string) => string;

const formats = {
  good: "green",
  bad: "red",
  warning: "yellow",
  heading: "bold",
  quiet: "dim",
} as const satisfies Record<Style, Parameters<typeof styleText>[0]>;

/** The stream that text is written to. */
interface ColorTarget {
  readonly isTTY?: boolean | undefined;
}

/**
 * Returns whether text for a stream is coloured: NO_COLOR (no-color.org) turns colours off, FORCE_COLOR turns them on
 * even without a terminal; otherwise any terminal that is not "dumb" has them.
 */
export function hasColors(
  { isTTY }: ColorTarget,
  env: Readonly<Record<string, string | undefined>> = process.env,
): boolean {
  if (env.NO_COLOR) return false;
  // Like Node.js, an empty FORCE_COLOR counts as 1.
  if (env.FORCE_COLOR !== undefined) return !["0", "false"].includes(env.FORCE_COLOR);
  return isTTY === true && env.TERM !== "dumb";
}

/** Creates a painter for a stream. */
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

/** Colours table headers, and lines and words that mean yes or no. */
export function colorText(text: string, paint: Paint): string {
  return text
    .replace(/^[A-Z][A-Z/-]*(?: {2,}[A-Z][A-Z/-]*)+$/m, (line) => paint("heading", line))
    .replace(/^.*(?:\bNOT valid\b|\bis (?:broken|damaged)\b).*$/gm, (line) => paint("bad", line))
    .replace(/^(?!.*NOT valid)(?:Valid\b.*|.*\b(?:is|are) valid\b.*)$/gm, (line) => paint("good", line))
    .replace(/(?<= {2})(?:UP|ACTIVE)$/gm, (word) => paint("good", word))
    .replace(/(?<= {2})(?:DOWN|DESTROYED)$/gm, (word) => paint("bad", word));
}
