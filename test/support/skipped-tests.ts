/** Explains why tests were skipped: what is missing, and how to install it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "../interop/tools.ts";

/** A skipped test. */
export interface SkippedTest {
  /** The path of its file. */
  readonly file: string;
  /** Its name, preceded by the names of its groups. */
  readonly name: string;
}

/** Install commands on Debian, by the program names in test titles. */
export const installations: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(import.meta.dirname, "installations.json"), "utf8"),
);

/** The reason for tests whose titles state none. */
const unknown = "something else";
/** Programs for which test files are named. */
const maxFiles = 5;

/** Formats the summary: one line per missing program, with the number of its tests. Empty if no test was skipped. */
export function describeSkipped(tests: readonly SkippedTest[], isAbsent = isMissing): string {
  if (tests.length === 0) return "";
  const byReason = Map.groupBy(
    tests.flatMap((test) => findReasons(test, isAbsent).map((reason) => ({ reason, test }))),
    ({ reason }) => reason,
  );
  const rows = [...byReason].sort(([, one], [, other]) => other.length - one.length);
  const width = Math.max(...rows.map(([reason]) => reason.length));
  const lines = rows.map(([reason, found]) => {
    const files = [...new Set(found.map(({ test }) => test.file))];
    const more = files.length > maxFiles ? ", …" : "";
    const remedy = installations[reason] ?? `in ${files.slice(0, maxFiles).join(", ")}${more}`;
    return `${String(found.length).padStart(6)}  ${reason.padEnd(width)}  ${remedy}`;
  });
  return `Skipped tests: ${tests.length}. They need:\n${lines.join("\n")}\n`;
}

/** Finds what a test is missing: as its title states, or as its file requires. */
function findReasons({ file, name }: SkippedTest, isAbsent: typeof isMissing): string[] {
  const [, needs] = /\bneeds (.*)/.exec(name) ?? [];
  if (needs !== undefined) {
    const named = Object.keys(installations).filter((word) =>
      new RegExp(`(?<![\\w-])${word}(?![\\w-])`, "i").test(needs),
    );
    // A title may list several programs, only some of which are missing, or a version newer than the installed one.
    const absent = named.filter((word) => !isProgram(word) || isAbsent(word));
    if (named.length > 0) return absent.length > 0 ? absent : named;
  }
  const asked = readFileSync(file, "utf8").matchAll(/\bisMissing\("([\w-]+)"\)|\b(QSP_TEST_[A-Z]+)\b/g);
  const found = [...asked].map(([, program = "", variable = ""]) => program || variable);
  const absent = [...new Set(found)].filter(
    (word) => word in installations && (isProgram(word) ? isAbsent(word) : !process.env[word]),
  );
  return absent.length > 0 ? absent : [unknown];
}

/** Whether a word can be the name of a program in PATH. */
function isProgram(word: string): boolean {
  return (
    /^[a-z][a-z0-9-]*$/.test(word) && !["root", "tun", "securesystemslib", "google-cloud-kms"].includes(word)
  );
}
