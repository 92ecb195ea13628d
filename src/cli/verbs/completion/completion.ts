/** `qsp completion`: generates shell completion scripts from the verb table. */

import { listOptions } from "../../command-line/options.ts";
import { usageError } from "../../exit-codes.ts";
import { declareVerb, type Verb } from "../../verb.ts";
import { fishScript } from "./fish.ts";

const shells = ["bash", "zsh", "fish"] as const;

export const completionVerbs: readonly Verb[] = [
  declareVerb({
    line: "completion SHELL",
    meaning:
      "Prints the completion of qsp commands for bash, zsh or fish; put the example into your shell's startup file. For\n" +
      "fish: qsp completion fish > ~/.config/fish/completions/qsp.fish",
    example: "source <(qsp completion bash)",
    isLocal: true,
    async run({ operands: [shell = ""], output, loadAllVerbs }) {
      const known = shells.find((name) => name === shell);
      if (known === undefined)
        throw usageError(`SHELL "${shell}" is unknown; use one of ${shells.join(", ")}`);
      const verbs = await loadAllVerbs();
      output.print(scripts[known](verbs));
    },
  }),
];

/** Lists possible next words by the words before them: "" for the first word, "kms" for the second. */
function nextWords(verbs: readonly Verb[]): ReadonlyMap<string, readonly string[]> {
  const next = new Map<string, Set<string>>();
  const offer = (before: string, word: string): void => {
    next.getOrInsert(before, new Set()).add(word);
  };
  for (const verb of verbs) {
    const words = verb.name.split(" ");
    for (const [i, word] of words.entries()) offer(words.slice(0, i).join(" "), word);
  }
  for (const word of ["help", "version"]) offer("", word);
  for (const shell of shells) offer("completion", shell);
  return new Map([...next].map(([before, words]) => [before, [...words]]));
}

/** Lists the options that take a value, with the value's completions. */
function listValues(verb: Verb): readonly { readonly name: string; readonly offers: string }[] {
  return Object.entries(listOptions(verb))
    .filter(([, { value }]) => value !== undefined)
    .map(([name, { file, offers }]) => ({
      name,
      offers: file !== undefined || offers === "files" ? "-files" : (offers ?? []).join(" "),
    }));
}

/** Generates the case statements for bash and zsh, which differ only in how they join words. */
function cases(verbs: readonly Verb[]): string {
  const words = [...nextWords(verbs)].map(
    ([before, next]) => `    "${before}") following="${next.join(" ")}" ;;`,
  );
  const options = verbs.map((verb) => {
    const names = Object.keys(listOptions(verb)).map((name) => `--${name}`);
    return `    "${verb.name}") flags="${names.join(" ")}" ;;`;
  });
  const values = verbs.flatMap((verb) =>
    listValues(verb).map(
      ({ name, offers }) => `    "${verb.name} --${name}") values="${offers || "-none"}" ;;`,
    ),
  );
  return `  case "$verb" in
${words.join("\n")}
  esac
  case "$verb" in
${options.join("\n")}
  esac
  case "$verb $previous" in
${values.join("\n")}
  esac`;
}

/** Not `words` or `options`: zsh reserves those names. */
const variables = "verb following flags values previous word i";

/** Generates the start of both scripts; the shells count and name words differently. */
function findVerb(verbs: readonly Verb[], words: string, current: string, first: number): string {
  return `_qsp() {
  local ${variables}
  word="\${${words}[${current}]}"
  previous="\${${words}[${current}-1]}"
  for ((i = ${first}; i < ${current}; i++)); do
    [[ "\${${words}[i]}" == -* ]] && break
    verb="\${verb:+$verb }\${${words}[i]}"
    [[ " ${leafVerbs(verbs)} " == *"|$verb|"* ]] && break
  done
${cases(verbs)}`;
}

function bashScript(verbs: readonly Verb[]): string {
  return `# qsp completion bash
${findVerb(verbs, "COMP_WORDS", "COMP_CWORD", 1)}
  case "$values" in
    -files) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    -none) COMPREPLY=(); return ;;
    ?*) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word"); return ;;
  esac
  if [[ "$word" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  elif [[ -n "$following" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$following" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _qsp qsp`;
}

function zshScript(verbs: readonly Verb[]): string {
  return `#compdef qsp
# qsp completion zsh
${findVerb(verbs, "words", "CURRENT", 2)}
  case "$values" in
    -files) _files; return ;;
    -none) return ;;
    ?*) compadd -- \${=values}; return ;;
  esac
  if [[ "$word" == -* ]]; then
    compadd -- \${=flags}
  elif [[ -n "$following" ]]; then
    compadd -- \${=following}
  else
    _files
  fi
}
compdef _qsp qsp`;
}

const scripts: Readonly<Record<(typeof shells)[number], (verbs: readonly Verb[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: (verbs) => fishScript({ next: nextWords(verbs), verbs }),
};

/** Lists verbs in a form that a shell can search: "|call||kms create|". Operands follow such a verb. */
function leafVerbs(verbs: readonly Verb[]): string {
  return verbs.map(({ name }) => `|${name}|`).join("");
}
