/** Generates the completion script for fish. */
import { listOptions, type Option } from "../../command-line/options.ts";
import type { Verb } from "../../verb.ts";

/** The words to complete. */
interface FishWords {
  readonly verbs: readonly Verb[];
  /** Possible next words by the words before them, such as "kms" for "kms create". */
  readonly next: ReadonlyMap<string, readonly string[]>;
}

/**
 * Generates the script: a function that finds the verb of a line, and a rule for each word and option, with the
 * description that fish shows next to it.
 */
export function fishScript({ verbs, next }: FishWords): string {
  const words = [...next].flatMap(([before, following]) =>
    following.map((word) => nextRule(before, word, verbs)),
  );
  const options = verbs.flatMap((verb) =>
    Object.entries(listOptions(verb)).map(([name, option]) => optionRule(verb, name, option)),
  );
  const groups = [...next.keys()].filter((before) => before !== "").map((before) => quote(before));
  return `# qsp completion fish
# Prints the verb that the line begins with, such as "kms create".
function __qsp_verb
  set -l known ${verbs.map(({ name }) => quote(name)).join(" ")}
  set -l verb
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and break
    set verb (string trim -- "$verb $word")
    contains -- "$verb" $known; and break
  end
  echo "$verb"
end

function __qsp_at
  test (__qsp_verb) = "$argv[1]"
end

# Positions where the next word is not a file.
function __qsp_no_files
  contains -- (__qsp_verb) '' ${groups.join(" ")}
end

complete -c qsp -e
complete -c qsp -n __qsp_no_files -f
${[...words, ...options].join("\n")}`;
}

function nextRule(before: string, word: string, verbs: readonly Verb[]): string {
  const name = `${before} ${word}`.trim();
  const meaning = verbs.find((verb) => verb.name === name)?.meaning ?? "";
  return `complete -c qsp -n ${quote(`__qsp_at ${quote(before)}`)} -f -a ${quote(word)}${describe(meaning)}`;
}

function optionRule({ name: verb }: Verb, name: string, { value, file, offers, meaning }: Option): string {
  // -r: requires a value; -f: the value is not a file; -F: the value is a file.
  const values =
    value === undefined
      ? ""
      : file !== undefined || offers === "files"
        ? " -r -F"
        : ` -r -f${offers === undefined ? "" : ` -a ${quote(offers.join(" "))}`}`;
  return `complete -c qsp -n ${quote(`__qsp_at ${quote(verb)}`)} -l ${name}${values}${describe(meaning)}`;
}

/** Maximum characters of a description, which fish shows next to the word. */
const maxCharacters = 70;

function describe(meaning: string): string {
  const [first = ""] = meaning.split(/(?<=[.;:])\s|\n/);
  const text = first.replace(/[.;:]$/, "");
  if (text === "") return "";
  return ` -d ${quote(text.length > maxCharacters ? `${text.slice(0, maxCharacters - 1)}…` : text)}`;
}

/** Quotes a text for fish: in single quotes, only \\ and ' are special. */
function quote(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
