import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { chunked, jsonOf, piecesOf, type RequestParts, refusalOf, requestOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";
import { invalid } from "./rules.ts";

const lines = { "content-type": "application/x-ndjson" };
const maxBytes = 200;

/** A library that returns the titles it received, with the shelf of each. */
const handlers: Parameters<typeof serveLibrary>[0] = {
  async importBooks(requests) {
    const titles: string[] = [];
    for await (const { parent, book } of requests) titles.push(`${parent}: ${book?.title}`);
    return { titles };
  },
  async writeFile(requests) {
    const titles: string[] = [];
    for await (const { name, cover } of requests)
      titles.push(`${name}: ${cover?.contentType} ${Buffer.from(cover?.data ?? [])}`);
    return { titles };
  },
};
const transcoder = serveLibrary(handlers, { maxBytes });

async function imported(parts: RequestParts, line = importLine) {
  const answer = await send(transcoder, line, parts);
  return answer.status === 200 ? jsonOf(answer).titles : refusalOf(answer);
}

const tooLarge = { status: 413, reason: "BODY_TOO_LARGE" };
const gzip = { "content-encoding": "gzip" };
const importLine = "POST /v1/shelves/1/books:import";

describe("a client stream of JSON lines", () => {
  it.each<[what: string, body: string, titles: string[]]>([
    ["one message per line", '{"title":"a"}\n{"title":"b"}\n', ["a", "b"]],
    ["blank lines", '\n\n{"title":"a"}\n \n\t\n{"title":"b"}\n\n', ["a", "b"]],
    ["Windows line endings", '{"title":"a"}\r\n{"title":"b"}\r\n', ["a", "b"]],
    ["characters of several bytes", '{"title":"é"}\n', ["é"]],
    ["no message", "", []],
    ["nothing but blank lines", "\n\n", []],
  ])("%s, whole and byte by byte", async (_what, body, titles) => {
    const expected = titles.map((title) => `shelves/1: ${title}`);
    expect(await imported({ headers: lines, body })).toEqual(expected);
    const bytes = Buffer.from(body);
    const pieces = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
    expect(await imported({ headers: lines, body: chunked(...pieces) })).toEqual(expected);
  });

  it.each(["application/ndjson", "application/jsonl", "application/x-ndjson; charset=utf-8"])(
    "may have the type %s",
    async (type) => {
      const parts = { headers: { "content-type": type }, body: '{"title":"a"}' };
      expect(await imported(parts)).toEqual(["shelves/1: a"]);
    },
  );

  const large = `{"title":"${"a".repeat(maxBytes)}"}\n`;
  it.each<[what: string, body: string | Uint8Array, headers?: object]>([
    ["an oversized message", large],
    ["an oversized message in one piece with others", `{"title":"a"}\n${large}{"title":"b"}\n`],
    [
      "a compressed body far beyond its size",
      gzipSync(`{"title":"${"a".repeat(100)}"}\n`.repeat(1000)),
      gzip,
    ],
  ])("refuses %s", async (_what, body, headers) => {
    expect(await imported({ headers: { ...lines, ...headers }, body })).toMatchObject(tooLarge);
  });

  it.each(["{}\n", "\n"])(
    "refuses a compressed body with more lines %j than its size allows",
    async (line) => {
      const parts = { headers: { ...lines, ...gzip }, body: gzipSync(line.repeat(2000)) };
      expect(refusalOf(await send(serveLibrary(handlers), importLine, parts))).toMatchObject(tooLarge);
    },
  );

  it("refuses a line without an end once it is too large", async () => {
    const endless = (async function* () {
      for (;;) yield Buffer.from("aaaaaaaaaa");
    })();
    expect(await imported({ headers: lines, body: endless })).toMatchObject(tooLarge);
  });

  it("joins one long line in tiny pieces only once", async () => {
    const title = "a".repeat(200_000);
    const body = (async function* () {
      for (const character of `{"title":"${title}"}\n`) yield Buffer.from(character);
    })();
    const joined = vi.spyOn(Buffer, "concat");
    onTestFinished(() => joined.mockRestore());
    const answer = await send(serveLibrary(handlers), importLine, { headers: lines, body });
    expect(jsonOf(answer).titles).toEqual([`shelves/1: ${title}`]);
    const joinedBytes = joined.mock.results.reduce((sum, { value }) => sum + value.length, 0);
    expect(joinedBytes).toBeLessThan(2 * title.length);
  });

  it.each([
    ["a line that is not JSON", '{"title":"a"}\nx\n', "JSON_INVALID"],
    ["a message on two lines", '{"title":\n"a"}\n', "JSON_INVALID"],
    ["an array", '[{"title":"a"}]\n', "FIELD_INVALID"],
    ["an integer that is too large for JSON", '{"isbn":9007199254740993}\n', "FIELD_INVALID"],
  ])("refuses %s", async (_what, body, reason) => {
    expect(await imported({ headers: lines, body })).toMatchObject({ status: 400, reason });
  });
});

describe("a client stream of one JSON array", () => {
  it.each<[body: string, titles: string[]]>([
    [' [ {"title":"a"} , {"title":"b"} ] ', ["a", "b"]],
    ['[{"title":"a,]}\\"["},{"authors":["x","y"],"labels":{"k":"v"},"title":"b"}]', ['a,]}"[', "b"]],
    ['[{"title":"\\\\"},{"title":"b"}]', ["\\", "b"]],
    ["[ ]", []],
    ["", []],
    ['{"title":"a"}', ["a"]],
  ])("%s", async (body, titles) => {
    expect(await imported({ body })).toEqual(titles.map((title) => `shelves/1: ${title}`));
  });

  const broken = ["[", '[{"title":"a"},]', '[,{"title":"a"}]', '[{"title":"a"}]]', '[{}{"title":"b"}]', "x"];
  it.each(broken)("refuses %s", async (body) => {
    expect(await imported({ body })).toEqual(invalid("JSON_INVALID"));
  });

  it.each(['[{"title":"a","title":"b"}]', '[{"title":"a"},1]'])("refuses an element: %s", async (body) => {
    expect(await imported({ body })).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
  });

  it("is limited as a whole, because it is read as a whole, unlike lines", async () => {
    const books = Array(50).fill('{"title":"a"}');
    expect(await imported({ body: `[${books}]` })).toMatchObject(tooLarge);
    expect(await imported({ headers: lines, body: books.join("\n") })).toHaveLength(50);
  });
});

it.each([
  ["JSON lines", lines, '{"title":"a"}\n', importLine, "shelves/1: a"],
  ["one JSON array", {}, '[{"title":"a"}]', importLine, "shelves/1: a"],
  ["raw bytes", { "content-type": "text/plain" }, "ab", "POST /v1/files/x", "x: text/plain ab"],
])("a client stream of %s may be compressed, with gzip only", async (_what, headers, body, line, title) => {
  expect(await imported({ headers: { ...headers, ...gzip }, body: gzipSync(body) }, line)).toEqual([title]);
  const unknown = await imported({ headers: { ...headers, "content-encoding": "br" }, body }, line);
  expect(unknown).toMatchObject({ status: 415, reason: "ENCODING_UNSUPPORTED" });
});

describe("a client stream", () => {
  it("applies path and query to every message", async () => {
    const body = '[{"parent":"shelves/2","book":{"title":"a"}},{"book":{"title":"b"}}]';
    expect(await imported({ body }, "POST /v1/books:import")).toEqual(["shelves/2: a", ": b"]);
  });

  it("refuses a message that contradicts the path", async () => {
    const result = await imported({ body: "[{}]" }, `${importLine}?parent=shelves/2`);
    expect(result).toEqual(invalid("FIELD_CONTRADICTION", "parent"));
  });

  it("has no messages if there is no body", async () => {
    expect(await imported({})).toEqual([]);
  });

  it("refuses other media types", async () => {
    const parts = { headers: { "content-type": "text/plain" }, body: "{}" };
    expect(await imported(parts)).toMatchObject({ status: 415, reason: "MEDIA_TYPE_UNSUPPORTED" });
  });

  it("refuses unknown parameters even if no message arrives", async () => {
    expect(await imported({}, `${importLine}?bogus=1`)).toEqual(invalid("PARAMETER_UNKNOWN", "bogus"));
  });
});

it("a client stream of raw bytes has a message for each received piece", async () => {
  const parts = { headers: { "content-type": "text/plain" }, body: chunked("a", "b") };
  expect(await imported(parts, "POST /v1/files/x")).toEqual(["x: text/plain a", "x: text/plain b"]);
});

describe("a bidirectional stream", () => {
  const reviewing = serveLibrary({
    async *reviewBooks(books) {
      for await (const { title } of books) yield { title: `${title}!` };
    },
  });

  it("answers each message on arrival", async () => {
    const { promise: answered, resolve } = Promise.withResolvers<void>();
    const body = (async function* () {
      yield Buffer.from('{"title":"a"}\n');
      await answered;
      yield Buffer.from('{"title":"b"}\n');
    })();
    const pieces = piecesOf(
      await reviewing.handle(requestOf("POST /v1/books:review", { headers: lines, body })),
    );
    const first = await pieces.next();
    expect(JSON.parse(Buffer.from(first.value).toString())).toMatchObject({ title: "a!" });
    resolve();
    const second = await pieces.next();
    expect(JSON.parse(Buffer.from(second.value).toString())).toMatchObject({ title: "b!" });
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("ends with the error of an invalid message", async () => {
    const body = '{"title":"a"}\n{"bogus":1}\n{"title":"c"}\n';
    const answer = await send(reviewing, "POST /v1/books:review", { headers: lines, body });
    const texts = answer.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answer.status).toBe(200);
    expect(texts).toMatchObject([{ title: "a!" }, { status: "error", code: "INVALID_ARGUMENT" }]);
  });
});
