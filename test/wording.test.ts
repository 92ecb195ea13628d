/** The wording of everything that a person reads: none of the habits that make English sound translated. */
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

/** Generated, recorded or third-party files. */
const skipped =
  /^(gen|test\/gen|test\/vectors)\/|^(LICENSE|package-lock\.json|docs\/answers\.json)$|\.(png|svg|lock|sum|bin|der|pem)$|^test\/wording\.test\.ts$/;

/** Words that only look like a habit, with the reason. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  // Headings that name what readers do.
  "README.md": ["**Learn:**"],
  "docs/README.md": ["## Learn"],
  // Directives of systemd.
  "deploy/systemd/qsp.service": ["Wants="],
  "extensions/kubernetes/deploy/qsp-k8s-kms.service": ["Wants="],
  "extensions/wireguard/deploy/qsp-wireguard@.service": ["Wants="],
  // A library that lends books.
  "test/server/profiles.test.ts": ["Lends books."],
};

/** A habit, and what to write instead. */
const habits: readonly (readonly [RegExp, string])[] = [
  [/\b(of others|strangers?)\b/i, "untrusted, third-party, another user's"],
  [/\bany more\b(?! than)/i, "no longer"],
  [/\bby now\b/i, "since, already, or nothing"],
  [/\b(is|are|was|were|be) gone\b/i, "was removed, has left, no longer exists"],
  [/\b(is|are|was) over\b(?! (a|the|gRPC|HTTP|TLS|REST|\d))/i, "has ended, has finished"],
  [/\b(that there (is|are)|there is not)\b/i, "that exists, unknown, missing"],
  [/\b(is|are|was|were) there\b/i, "exists, is installed, is present"],
  [/\bThe (most|fewest)\b/, "Maximum, Minimum"],
  [/\bwants?\b/i, "requires, expects, needs"],
  [/\b(tells?|told)\b/i, "returns, reports, shows, notifies"],
  [/\blearns?\b/i, "reads, is notified, finds out"],
  [/\bas (it is|they are)\b/i, "unchanged, or the noun"],
  [/\b(that|those) of\b/i, "the noun again"],
  [/\banother one\b/i, "a different one, a second one, or the noun"],
  [/\b(lends?|obeys?|at home)\b/i, "opens and closes, interprets, hosted"],
  [/\b(what comes of|who calls|on another way)\b/i, "the result, the caller, through another channel"],
  [/\bat fault\b/i, "fails"],
  [/After reading this page/, "open the page with its subject"],
  [/\/\*\* .*\S @(returns|throws|param)\b/, "a line for the sentence, then one for each tag"],
  [/\/\*\* The (dependencies|options|inputs?|parts|outcome|results?) of\b/, "nothing, or when to use it"],
  [/^ *\/\/ (Gives|Contains|Carries|Names|Holds) (the|a|an)\b/, "a noun phrase, in protos"],
  [
    /\b(keys?|tokens?|programs|logs?|answers|errors|calls|names|records|limits|certificates?) of (the|a) (server|store|client|caller|user|device)\b/i,
    "a compound noun: server-held key, client certificate, the user's records",
  ],
];

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  // A linked folder, such as node_modules, is one entry.
  .filter((path) => path !== "" && !skipped.test(path) && statSync(join(root, path)).isFile());
const lines = files.flatMap((path) =>
  readFileSync(join(root, path), "utf8")
    .split("\n")
    .map((text, at) => ({ path, place: `${path}:${at + 1}`, text })),
);

it.each(habits)("nothing says %s", (habit, instead) => {
  const found = lines.filter(
    ({ path, text }) => habit.test(text) && !exceptions[path]?.some((words) => text.includes(words)),
  );
  expect(
    found.map(({ place, text }) => `${place}: ${text.trim()}`),
    `write instead: ${instead}`,
  ).toEqual([]);
});
