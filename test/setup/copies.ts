/** Copies of the project in which tests compile and pack it. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** Copies what a start compiles. */
export function copySources(target: string, ...others: readonly string[]): void {
  const sources = [
    "src",
    "console",
    "extensions",
    "gen",
    "docs/answers.json",
    "package.json",
    "package-lock.json",
  ];
  for (const part of [...sources, ...others])
    cpSync(join(root, part), join(target, part), { recursive: true, preserveTimestamps: true });
}

/** Copies everything that git tracks, or would. */
export function copyClone(target: string): void {
  const flags = ["--cached", "--others", "--exclude-standard", "-z"];
  const listed = execFileSync("git", ["ls-files", ...flags], { cwd: root, encoding: "utf8" });
  for (const path of listed.split("\0").filter((path) => path !== "" && existsSync(join(root, path))))
    cpSync(join(root, path), join(target, path));
}
