import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { TimestampSchema, timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type ParsedOptions, readVerbLine } from "../../src/cli/command-line/options.ts";
import { readSeconds, readTime } from "../../src/cli/command-line/time-options.ts";
import { askPages } from "../../src/cli/connection/api-client.ts";
import { CliError, exitCodes } from "../../src/cli/exit-codes.ts";
import { readByteLines, readLines } from "../../src/cli/files/read.ts";
import { addVerbs, createVerbTable, loadAllVerbs, loadGroup, loadVerb } from "../../src/cli/groups.ts";
import { cell, createOutput, facts, harmless, table, time } from "../../src/cli/output/output.ts";
import { createProgress, withProgress } from "../../src/cli/output/progress.ts";
import { reportError } from "../../src/cli/output/report-error.ts";
import type { Verb, VerbInput } from "../../src/cli/verb.ts";
import { findNearest, suggest } from "../../src/suggest.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { verbTable } from "../support/whole-program.ts";

describe("the command line", () => {
  it.each([
    [["kms", "list", "--json"], "kms list"],
    [["chain", "verify"], "chain verify"],
    [["backup", "file"], "backup"],
    [["user"], undefined],
    [["kms", "crate"], undefined],
    [["toString"], undefined],
    [[], undefined],
  ])("%j starts with the verb %s", async (args, expected) => {
    expect((await loadVerb(verbTable, args))?.name).toBe(expected);
  });

  it("has no duplicate verb or option names", async () => {
    const names = (await loadAllVerbs(verbTable)).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("the verbs of an extension", () => {
  const load = async () => [];
  const order = (word: string, after: string) =>
    Object.keys(addVerbs({ user: load, "user of": load, client: load }, [{ word, after, load }]));

  it("are listed after the verbs that they name, which must exist", () => {
    expect(order("lamp", "user")).toEqual(["user", "lamp", "user of", "client"]);
    expect(order("lamp", "client")).toEqual(["user", "user of", "client", "lamp"]);
    expect(() => order("lamp", "users")).toThrow("lamp is placed after the unknown verb users");
  });

  it("may change verbs of the core, and no others", async () => {
    const change = async () => (verbs: readonly Verb[]) =>
      verbs.map((verb) => ({ ...verb, meaning: "Glows." }));
    const changed = createVerbTable([{ changedVerbs: [{ word: "health", load: change }] }]);
    expect((await loadGroup(changed, "health")).map(({ meaning }) => meaning)).toEqual(["Glows."]);
    expect(() => createVerbTable([{ changedVerbs: [{ word: "lamp", load: change }] }])).toThrow(
      "an extension changes the unknown verb lamp",
    );
  });
});

describe("options", () => {
  const verb: Verb = {
    name: "try",
    operands: ["ONE", "[TWO]"],
    options: {
      text: { value: "TEXT", meaning: "" },
      many: { value: "TEXT", meaning: "", isMany: true },
      flag: { meaning: "" },
    },
    meaning: "",
    example: "",
    isLocal: true,
    run: async () => 0,
  };

  it.each([
    [
      "stand before, between and after operands",
      "--flag a --text=x b --many 1 --many=2",
      ["a", "b"],
      "x",
      ["1", "2"],
    ],
    ["end at --, after which everything is an operand", "-- --flag", ["--flag"], undefined, []],
    ["keep - and values with =", "- --text a=b", ["-"], "a=b", []],
    ["accept a value that starts with a dash after =", "a --text=-x", ["a"], "-x", []],
  ] as const)("%s", (_what, line, expected, text, many) => {
    const { operands, options } = readVerbLine(verb, line.split(" "));
    const values = [operands, options.text("text"), options.all("many"), options.flag("flag")];
    expect(values).toEqual([expected, text, many, line.startsWith("--flag")]);
  });

  it("do not include the properties that every object has", () => {
    expect(() => readVerbLine(verb, ["a", "--constructor"])).toThrow("--constructor");
  });

  it.each(["1.5", "-1", "1e3", "0x1", "", "11", "9".repeat(17)])('of a whole number refuse "%s"', (value) => {
    const { options } = readVerbLine(verb, ["a", `--text=${value}`]);
    expect(() => options.whole("text", 0, 10)).toThrow("--text");
  });
});

describe("text for people", () => {
  it("has columns as wide as their widest cell, no trailing spaces, and each row on one line", () => {
    const rows = [["wide one", "1"], ["x"]];
    expect(table(["A", "LONG"], rows)).toBe("A         LONG\nwide one  1\nx");
    expect(table(["A", "B"], [["two\nlines", "b"]]).split("\n")).toHaveLength(2);
  });

  it("shows blanks with which a cell could forge the next row of a wrapped table", () => {
    expect(cell("key  1  SIGN")).toBe("key\u2423\u24231\u2423\u2423SIGN");
    expect([" key", "key ", " "].map(cell)).toEqual(["\u2423key", "key\u2423", "\u2423"]);
    expect(cell("a\u3000\u2800b \n c\u00a0\u3164d")).toBe("a\u2423\u2423b\u2423\u2423\u2423c\u2423\u2423d");
    // Characters without width do not separate blanks.
    expect(cell("a \u200d \ufe0fb")).toBe("a\u2423\u200d\u2423\ufe0fb");
    const plain = ["one key", "two\nlines", "\u2764\ufe0f ada", "\u{1f469}\u200d\u{1f52c}", ""];
    expect(plain.map(cell)).toEqual(["one key", "two lines", ...plain.slice(2)]);
    expect(table(["KEY"], [["  forged"]])).toBe("KEY\n\u2423\u2423forged");
  });

  it("leaves out missing facts", () => {
    expect(facts({ one: "1", two: undefined, three: "", fourth: "4" })).toBe("one     1\nfourth  4");
    expect(time(create(TimestampSchema, { seconds: 2n ** 62n }))).toBe("not a time");
    let json = "";
    createOutput(true, (text) => {
      json += text;
    }).report({ name: "a\u009bb" }, "");
    expect(json).toBe('{"name":"a\\u009bb"}\n');
    expect(facts({ head: "0\nvalid  yes" })).toBe("head  0\n      valid  yes");
  });

  it.each([[], ["--json"]])("reports no error that controls the terminal", (...args) => {
    const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => written.mockRestore());
    const cause = new Error("a\u001b[2Jb\u009b2Jc");
    reportError(new CliError(exitCodes.fault, cause.message, { cause }), args);
    expect(written.mock.calls.join("")).not.toMatch(/(?!\n)\p{Cc}/u);
  });

  it("never controls the terminal, whatever the server sends", () => {
    expect(harmless("a\u001b[2Jb\rc\nd\u009b")).toBe("a\u{fffd}[2Jb\u{fffd}c\nd\u{fffd}");
    // Characters that reorder text or are invisible are removed; characters that join letters and emoji stay.
    expect(harmless("a\u202eb\u200bc\u2028d")).toBe("a\u{fffd}b\u{fffd}c\u{fffd}d");
    expect(harmless("\u{1f469}\u200d\u{1f52c}")).toBe("\u{1f469}\u200d\u{1f52c}");
  });
});

it("the nearest name is the only one within this distance that shares half of its letters", () => {
  expect(findNearest("sing", ["SIGN", "KEM"])).toBe("SIGN");
  expect(findNearest("ML-DSA-655", ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"])).toBe("ML-DSA-65");
  expect(findNearest("ML-DSA-99", ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"])).toBeUndefined();
  expect(findNearest("RSA", ["KEM"])).toBeUndefined();
  expect(findNearest("RSA", [])).toBeUndefined();
});

it.each([
  ["kms crate", ["kms list", "kms create", "kms rotate"], ["kms create", "kms rotate"]],
  ["entirely different", ["kms list"], []],
  // Names that start with the word come before shorter ones with the same letters.
  ["--data", ["--auth", "--data-dir", "--database-url", "--date"], ["--data-dir", "--database-url"]],
  ["--DATA-D", ["--auth", "--data-dir", "--date"], ["--data-dir"]],
  ["max", ["max-a", "max-b", "max-long", "max-longer", "mix"], ["mix", "max-a", "max-b"]],
])("near names of %j among %j are %j", (word, names, near) => {
  expect(suggest(word, names)).toEqual(near);
});

describe("the progress bar", () => {
  /** Shows progress at these times, in milliseconds since the start; returns what the terminal gets until the end. */
  function showAt(isTTY: boolean, ...times: readonly number[]): string[] {
    const written: string[] = [];
    let nowMs = 0;
    const output = { isTTY, write: (text: string) => written.push(text) };
    const progress = createProgress("file", 1000, output, () => nowMs);
    for (nowMs of times) progress.show(500);
    progress.end();
    return written;
  }

  it("appears once the work has taken a second, at most ten times per second, and disappears at the end", () => {
    const bar = expect.stringMatching(/\] 50 %.*, 1 s left$/);
    expect(showAt(true, 999, 1000, 1090)).toEqual([bar, "\r\x1b[K"]);
    expect(showAt(true, 1000, 1100)).toHaveLength(3);
    expect(showAt(true, 0)).toEqual([]);
    expect(showAt(false, 5000)).toEqual([]);
  });

  it("passes the chunks through, and ends with them", async () => {
    const shown: number[] = [];
    const progress = { show: (bytes: number) => void shown.push(bytes), end: () => void shown.push(-1) };
    async function* chunks() {
      yield Buffer.from("abc");
      yield Buffer.from("de");
    }
    const passed: string[] = [];
    for await (const chunk of withProgress(chunks(), progress)) passed.push(Buffer.from(chunk).toString());
    expect([passed, shown]).toEqual([
      ["abc", "de"],
      [3, 5, -1],
    ]);
  });
});

describe("a list of many pages", () => {
  const [first, second] = [{ keyId: "key-1" }, { keyId: "key-2" }];
  /** More items than a call takes as arguments. */
  const many = Array.from({ length: 150_000 }, () => second);

  /** Runs a verb with a server whose list has two pages. */
  async function answerOf(line: readonly string[], pages: readonly Record<string, unknown>[]) {
    const verb = await loadVerb(verbTable, line);
    let json = "";
    const output = createOutput(true, (text) => {
      json += text;
    });
    const ask = async (method: DescMethodUnary, { pageToken }: { readonly pageToken: string }) =>
      create(method.output, pageToken === "" ? { ...pages[0], nextPageToken: "2" } : pages[1]);
    const { options } = readVerbLine(verb ?? { name: "", operands: [], options: {} }, []);
    const files = { areOnStandardOutput: false, write: () => undefined };
    await verb?.run({ operands: [], options, output, files, server: { ask } } as unknown as VerbInput);
    return JSON.parse(json);
  }

  it("is one answer of kms list", async () => {
    const { keys, nextPageToken } = await answerOf(["kms", "list"], [{ keys: [first] }, { keys: many }]);
    expect([keys.length, nextPageToken]).toEqual([1 + many.length, ""]);
  });

  it("is one answer of kms public-keys, in all its forms", async () => {
    const keys = [{ kty: "AKP" }];
    const pages = [
      { exported: [first], keys, pem: "one" },
      { exported: [second], keys, pem: "two" },
    ];
    expect(await answerOf(["kms", "public-keys"], pages)).toMatchObject({
      exported: [first, second],
      keys: [...keys, ...keys],
      pem: "onetwo",
      nextPageToken: "",
    });
  });

  it("does not end if a page follows itself", async () => {
    const ask = async () => ({ nextPageToken: "again", items: [1] });
    await expect(askPages(ask)).rejects.toThrow("returning the same page of the list");
  });
});

describe("lines of a file", () => {
  const degrees = Buffer.from("21.5 \xb0C", "latin1");

  function write(...parts: (string | Uint8Array)[]): string {
    const path = join(makeTemporaryDirectory(), "lines");
    writeFileSync(path, Buffer.concat(parts.map((part) => Buffer.from(part as string))));
    return path;
  }

  it("are read byte for byte, even if they are binary and arrive in parts", async () => {
    const long = Buffer.alloc(1_300_000, 0xb0);
    const lines = await Array.fromAsync(readByteLines(write(degrees, "\r\n\n", long, "\n", degrees)));
    expect(lines.map((line) => Buffer.from(line))).toEqual([degrees, Buffer.alloc(0), long, degrees]);
  });

  it("are refused as text if they are not UTF-8", async () => {
    const path = write("Grüße\r\n", degrees);
    await expect(Array.fromAsync(readLines(path))).rejects.toThrow(`line 2 of ${path} is not UTF-8`);
    expect(await Array.fromAsync(readLines(write("Grüße\r\n\nMüller")))).toEqual(["Grüße", "", "Müller"]);
  });
});

const now = new Date("2026-11-23T10:00:00.000Z");

function optionsWith(text: string): ParsedOptions {
  const taker = { name: "try", operands: [], options: { t: { value: "T", meaning: "" } }, isLocal: true };
  return readVerbLine(taker, [`--t=${text}`]).options;
}

describe("a duration", () => {
  it.each([
    ["0s", 0],
    ["12h", 43_200],
    ["30d", 2_592_000],
    ["12w", 7_257_600],
  ])("%s has %d seconds", (text, seconds) => {
    expect(readSeconds(optionsWith(text), "t")).toBe(seconds);
  });

  it.each(["", "5", "5m", "-1d", "1.5d", "d", "1d ", "99999999999s", "9999999999w"])(
    'is not "%s", and the error names the units',
    (text) => expect(() => readSeconds(optionsWith(text), "t")).toThrow("s, h, d and w"),
  );

  it("may be as short and as long as its limits, but no shorter and no longer", () => {
    const read = (text: string) => readSeconds(optionsWith(text), "t", { min: 1, max: 120 });
    expect([read("1d"), read("120d")]).toEqual([86_400, 10_368_000]);
    expect(() => read("86399s")).toThrow("must be at least 1d");
    expect(() => read("10368001s")).toThrow("may be at most 120d");
  });
});

describe("a time", () => {
  it.each([
    ["2027-01-01T00:00:00Z", 1, "2027-01-01T00:00:00.000Z"],
    ["2027-01-01T02:00:00.5+02:00", 1, "2027-01-01T00:00:00.500Z"],
    ["2028-02-29", 1, "2028-02-29T00:00:00.000Z"],
    ["1d", 1, "2026-11-24T10:00:00.000Z"],
    ["1h", -1, "2026-11-23T09:00:00.000Z"],
  ] as const)("%s is, in the direction %d, %s", (text, direction, expected) => {
    const found = readTime(optionsWith(text), "t", direction, now);
    expect(found && timestampDate(found).toISOString()).toBe(expected);
  });

  const days = ["", "tomorrow", "2027", "2027-02-29", "2027-13-01", "2027-02-31T00:00:00Z"];
  const times = ["T24:00:00Z", "T23:60:00Z", "T23:59:60Z", "T00:00:00+24:00", "T00:00:00+01:60", "T00:00:00"];
  it.each([...days, ...times.map((time) => `2027-01-01${time}`)])('is not "%s"', (text) => {
    expect(() => readTime(optionsWith(text), "t", 1, now)).toThrow("--t");
  });
});
