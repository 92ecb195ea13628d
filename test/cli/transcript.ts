/**
 * Transcripts: command lines with everything that they print.
 *
 * A line that starts with "# " is the title of a section, which runs in its own directory. A line that starts with "$
 * " is a command: `qsp`, which runs in this process (`<<<` and `<` give it standard input), or a shell command. Below it is the output: lines of standard
 * error start with "! ", and an exit code other than 0 is at the end in brackets. `npx vitest run test/cli -u`
 * records everything anew.
 *
 * Values that differ from run to run have names: the second wallet of a section is wallet-2, and commands may use the
 * name.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Run } from "../support/run-here.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { launch, qsp, type RunOptions } from "./qsp.ts";

/** IDs, addresses and hashes, each with the kind that names it. */
const identifiers =
  /\b(key|wallet|multisig|proposal|token|contract|device|tunnel|grant)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(0x)[0-9a-f]{40}\b|\b()[0-9a-f]{64}\b/g;

/** Names for the values of a section, in both directions. */
interface Names {
  readonly byValue: Map<string, string>;
  readonly byName: Map<string, string>;
}

/**
 * Runs all commands of a transcript again.
 *
 * @returns the transcript with the new output
 */
export async function replay(transcript: string, url: string): Promise<string> {
  const lines = transcript.split("\n").filter((line) => /^[#$] /.test(line));
  const written: string[] = [];
  let place: RunOptions = { cwd: makeTemporaryDirectory(), url };
  let names: Names = { byValue: new Map(), byName: new Map() };
  for (const line of lines) {
    if (line.startsWith("# ")) {
      if (written.length > 0) written.push("");
      place = { cwd: makeTemporaryDirectory(), url };
      names = { byValue: new Map(), byName: new Map() };
      written.push(line);
      continue;
    }
    const command = line.slice(2).replaceAll(/\b[a-z]+-\d+\b/g, (name) => names.byName.get(name) ?? name);
    const { code, stdout, stderr } = await runCommand(command, place);
    const texts = [stdout, stderr].map((text) => nameValues(text, place, names, transcript));
    const [output = [], errors = []] = texts.map((text) =>
      text.split("\n").slice(0, text === "" ? 0 : undefined),
    );
    written.push(
      line,
      ...output,
      ...errors.map((error) => `! ${error}`),
      ...(code === 0 ? [] : [`[${code}]`]),
    );
  }
  return `${written.join("\n")}\n`;
}

/** Runs `qsp` in this process, a statement in the store, or any other command in a shell. */
function runCommand(command: string, place: RunOptions): Promise<Run> {
  const [, variables = "", words = "", text = "", file] =
    /^((?:[A-Z_]+=\S+ )*)qsp ?(.*?)(?: <<< '([^']*)'| < (\S+))?$/.exec(command) ?? [];
  if (command.startsWith("sql ")) return runSql(command.slice("sql ".length), place);
  if (!/^(?:[A-Z_]+=\S+ )*qsp\b/.test(command)) return launch("sh", ["-c", command], place).end;
  const env = Object.fromEntries(variables.split(" ").flatMap((one) => (one ? [one.split("=", 2)] : [])));
  const stdin = file === undefined ? text : readFileSync(join(place.cwd, file));
  return qsp(splitWords(words), { ...place, env, stdin });
}

/** Runs a statement in the store of the directory `data`. */
async function runSql(statement: string, { cwd }: RunOptions): Promise<Run> {
  const database = new DatabaseSync(join(cwd, "data", "qsp.db"));
  database.exec(statement);
  database.close();
  return { code: 0, stdout: "", stderr: "" };
}

/** The words of a command line, with shell quoting resolved. */
export function splitWords(line: string): string[] {
  const words = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  return words.map((word) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, "$1$2"));
}

/** Replaces values that differ from run to run by names, unless the transcript itself contains them. */
function nameValues(text: string, { cwd, url = "" }: RunOptions, names: Names, transcript: string): string {
  return text
    .trimEnd()
    .replaceAll(cwd, "DIRECTORY")
    .replaceAll(url, "URL")
    .replaceAll(identifiers, (value, kind, address) => {
      const known = names.byValue.get(value);
      if (known !== undefined) return known;
      const family = kind ?? (address ? "address" : "hash");
      const count = [...names.byName.keys()].filter((name) => name.startsWith(`${family}-`)).length;
      const name = `${family}-${count + 1}`;
      names.byValue.set(value, name);
      names.byName.set(name, value);
      return name;
    })
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) =>
      isOfCommand(time, transcript) ? time : "TIME",
    )
    .replaceAll(/(?:[0-9A-F]{2}:){31}[0-9A-F]{2}/g, "FINGERPRINT")
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID")
    .replaceAll(/\b[0-9a-f]{32}\b/g, "MASTER-KEY-ID")
    .replaceAll(/\b[0-9a-f]{16}…/g, "HASH…")
    .replaceAll(/Ms":[\d.]+/g, 'Ms":MS')
    .replaceAll(/(-----BEGIN [A-Z ]+-----)[^-]+/g, "$1…")
    .replaceAll(/[\w+/-]{43,}={0,2}/g, (value) => (/\d/.test(value) ? "BASE64" : value));
}

function isOfCommand(value: string, transcript: string): boolean {
  return transcript.split("\n").some((line) => line.startsWith("$ ") && line.includes(value));
}
