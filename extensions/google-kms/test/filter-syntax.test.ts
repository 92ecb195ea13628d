import { describe, expect, it } from "vitest";
import { describeRefusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { type Filter, parseFilter } from "../filter-syntax.ts";

/** Formats a filter with all brackets. */
function write(filter: Filter): string {
  if (filter.kind === "comparison") return `${filter.field}${filter.operator}${JSON.stringify(filter.value)}`;
  if (filter.kind === "not") return `not(${write(filter.of)})`;
  return `${filter.kind}(${filter.of.map(write).join(",")})`;
}

describe("a filter", () => {
  it.each([
    ["state=ENABLED", 'state="ENABLED"'],
    [' state = "ENABLED" ', 'state="ENABLED"'],
    ["a=1 AND b=2", 'and(a="1",b="2")'],
    ["a=1 b=2", 'and(a="1",b="2")'],
    ["a=1 OR b=2", 'or(a="1",b="2")'],
    ["a=1 AND b=2 OR c=3", 'and(a="1",or(b="2",c="3"))'],
    ["a=1 OR b=2 c=3", 'and(or(a="1",b="2"),c="3")'],
    ["(a=1 AND b=2) OR c=3", 'or(and(a="1",b="2"),c="3")'],
    ["NOT a=1", 'not(a="1")'],
    ["-a=1", 'not(a="1")'],
    ["-(a=1 OR b=2)", 'not(or(a="1",b="2"))'],
    ["NOT (a=1)", 'not(a="1")'],
    ['a!="b c"', 'a!="b c"'],
    ['a:"x\\"y\\\\z"', 'a:"x\\"y\\\\z"'],
    ["a>=1 a=>2 a<=3 a<4 a>5", 'and(a>="1",a>="2",a<="3",a<"4",a>"5")'],
    ["labels.team=alpha-1", 'labels.team="alpha-1"'],
    ["labels.größe=-x", 'labels.größe="-x"'],
    ["name:projects/p/locations/l", 'name:"projects/p/locations/l"'],
    ["a=AND", 'a="AND"'],
    ['a=""', 'a=""'],
    ["a=-", 'a="-"'],
  ])("%s parses as %s", (text, written) => {
    expect(write(parseFilter(text))).toBe(written);
  });

  it.each([
    "state",
    "state=",
    "=ENABLED",
    "AND",
    "a=1 AND",
    "a=1 OR",
    "a=1 OR OR b=2",
    "NOT NOT a=1",
    "-",
    "(",
    "()",
    "(a=1",
    "a=1)",
    '"a"=1',
    'a="x',
    'a=x"y"',
    "a=1 b",
    "a!1",
    "a=(1)",
  ])("rejects %s", (text) => {
    expect(refusalOf(text)).toEqual(invalid("filter"));
  });

  it.each([
    ["characters", `a=${"x".repeat(2000)}`],
    ["words", Array.from({ length: 34 }, () => "a=1").join(" ")],
    ["brackets", `${"(".repeat(10)}a=1${")".repeat(10)}`],
    ["opening brackets", "(".repeat(1999)],
    ["quotes", '"'.repeat(1999)],
    ["backslashes", `a="${"\\".repeat(1999)}`],
    ["spaces", `a=1${" ".repeat(1000)}\0${" ".repeat(900)}=`],
  ])("rejects too many %s", (_what, text) => {
    expect(refusalOf(text)).toEqual(invalid("filter"));
  });
});

function refusalOf(text: string) {
  try {
    return write(parseFilter(text));
  } catch (error) {
    return describeRefusal(error as never);
  }
}
