/** What the protos and profiles declare of the ways in which calls fail; app-under-test.ts compares what servers do. */
import { describe, expect, it } from "vitest";
import { reasonSections } from "../../src/errors/reasons.ts";
import { listDeclared } from "../support/declared-reasons.ts";
import { loadPackages } from "../support/whole-program.ts";

const declared = listDeclared(await loadPackages());
const named = new Set(declared.flatMap(({ reasons }) => reasons));

/** Reasons of some calls, among topics of all calls. */
const ofSome = ["KEY_INVALID", "LENGTH_INVALID", "LOGIN_FAILED", "LOGIN_LIMITED", "QUOTA_EXCEEDED"];
/** Of its topic, the one that every call can give: even the record of its caller may be damaged. */
const ofAll = "RECORD_DAMAGED";
/** The topics of records, whose other reasons are of some calls. */
const topicsOfSome = ["Keys", "Records of other services", "Verifiable logs"];

const inCore = new Map(
  reasonSections.flatMap(({ heading, reasons }) =>
    Object.keys(reasons).map((name) => [
      name,
      ofSome.includes(name) || (topicsOfSome.includes(heading) && name !== ofAll),
    ]),
  ),
);

describe("the reasons that an RPC declares", () => {
  it.each(declared.filter(({ reasons }) => reasons.length > 0))("$name: exist, each once", (rpc) => {
    const { method, profiles, reasons } = rpc;
    const ofService = (profiles[method.parent.typeName]?.reasons ?? []).map(({ name }) => name);
    expect(reasons.filter((name) => !inCore.has(name) && !ofService.includes(name))).toEqual([]);
    expect(reasons).toEqual([...new Set(reasons)]);
  });

  it("are none of those that do not depend on what it does", () => {
    expect([...named].filter((name) => inCore.get(name) === false)).toEqual([]);
  });

  // An extension serves the logs.
  const isThere = declared.some(({ name }) => name.startsWith("tlog."));
  const wanted = [...inCore].flatMap(([name, isOfSome]) => (isOfSome ? [name] : []));
  const logReasons = Object.keys(
    reasonSections.find(({ heading }) => heading === "Verifiable logs")?.reasons ?? {},
  );

  it("are all that depend on what an RPC does", () => {
    const missing = wanted.filter((name) => !named.has(name) && (isThere || !logReasons.includes(name)));
    expect(missing).toEqual([]);
  });
});
