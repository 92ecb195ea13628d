/**
 * What the protos and profiles declare about how calls fail; app-under-test.ts compares it with what servers
 * do.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { reasons as ofCore } from "../../src/errors.ts";
import { listDeclared } from "../support/declared-reasons.ts";
import { loadPackages } from "../support/whole-program.ts";

const declared = listDeclared(await loadPackages());
const named = new Set(declared.flatMap(({ reasons }) => reasons));

/** Reasons specific to some calls, in topics common to all calls. */
const ofSome = [
  "KEY_INVALID",
  "LENGTH_INVALID",
  "LOGIN_FAILED",
  "LOGIN_LIMITED",
  "QUOTA_EXCEEDED",
  "RANGE_NOT_SATISFIABLE",
];
/** The one reason in its topic that every call can return: even its caller's record may be damaged. */
const ofAll = "RECORD_DAMAGED";
/** Record topics, whose other reasons are specific to some calls. */
const topicsOfSome = ["Keys", "Records of other services", "Verifiable logs"];

const page = readFileSync(join(import.meta.dirname, "../../docs/errors.md"), "utf8");
/** The reasons in docs/errors.md by the headings of its tables. */
const topics = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((text) => [
      text.split("\n")[0] ?? "",
      [...text.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => name),
    ]),
);
const ofTopics = new Set(topicsOfSome.flatMap((heading) => topics.get(heading) ?? []));

/** Returns whether only some calls return a reason. */
function isOfSome(name: string): boolean {
  return ofSome.includes(name) || (ofTopics.has(name) && name !== ofAll);
}

describe("the reasons declared by an RPC", () => {
  it.each(declared.filter(({ reasons }) => reasons.length > 0))(
    "$name: exist, and each occurs once",
    (rpc) => {
      const { method, profiles, reasons } = rpc;
      const ofService = (profiles[method.parent.typeName]?.reasons ?? []).map(({ name }) => name);
      expect(reasons.filter((name) => !Object.hasOwn(ofCore, name) && !ofService.includes(name))).toEqual([]);
      expect(reasons).toEqual([...new Set(reasons)]);
    },
  );

  it("exclude those that do not depend on what it does", () => {
    expect([...named].filter((name) => Object.hasOwn(ofCore, name) && !isOfSome(name))).toEqual([]);
  });

  it("include all that depend on what it does", () => {
    // An extension serves the logs.
    const hasLogs = declared.some(({ name }) => name.startsWith("tlog."));
    const others = hasLogs ? [] : (topics.get("Verifiable logs") ?? []);
    const missing = Object.keys(ofCore).filter((name) => isOfSome(name) && !named.has(name));
    expect(missing.filter((name) => !others.includes(name))).toEqual([]);
  });
});
