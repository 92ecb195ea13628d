import { describe, expect, it } from "vitest";
import { readNotes } from "../../src/release/notes.ts";

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
