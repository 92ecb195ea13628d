import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readNotes } from "../../src/release/notes.ts";
import { findVersionFaults } from "../../src/release/versions.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const changelog = `# Changelog

## 0.2.0, not released

New.

### Keys

- One.

## 0.1.0, 2027-01-31

First.
`;

describe("release notes", () => {
  it("are the section of the version in CHANGELOG.md, without its heading", () => {
    expect(readNotes(changelog, "0.2.0")).toEqual({ date: undefined, text: "New.\n\n### Keys\n\n- One.\n" });
  });

  it("have the date in the heading", () => {
    expect(readNotes(changelog, "0.1.0")).toEqual({ date: "2027-01-31", text: "First.\n" });
  });

  it("do not exist for a version that the changelog does not list", () => {
    expect(readNotes(changelog, "0.1")).toBeUndefined();
  });
});

const root = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

describe("the version of the project", () => {
  it("is the same in every file that names it", () => {
    expect(findVersionFaults(root, version)).toEqual([]);
  });

  const lines: [path: string, line: string][] = [
    ["package.json", `"version": "${version}"`],
    ["package-lock.json", `"version": "${version}"`],
    ["CHANGELOG.md", `## ${version}`],
    ["deploy/helm/qsp/Chart.yaml", `appVersion: ${version}`],
    ["native/Cargo.toml", `version = "${version}"`],
    ["native/Cargo.lock", `name = "qsp-native"\nversion = "${version}"`],
    ["src/crypto/native/load.ts", `nativeVersion = "${version}"`],
    ["docs/operate.md", `quantum-safe-playground-${version}.tgz`],
  ];
  it.each(lines)("is missed if %s still has an older one", (path, text) => {
    const copy = makeTemporaryDirectory();
    for (const [file] of lines) {
      mkdirSync(dirname(join(copy, file)), { recursive: true });
      cpSync(join(root, file), join(copy, file));
    }
    const stale = readFileSync(join(copy, path), "utf8").replace(text, text.replace(version, "0.0.9"));
    writeFileSync(join(copy, path), stale);
    expect(findVersionFaults(copy, version)).toContain(`${path} has version 0.0.9; expected ${version}`);
  });
});
