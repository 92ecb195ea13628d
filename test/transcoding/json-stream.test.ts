import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { chunked, jsonOf, piecesOf, type RequestParts, refusalOf, requestOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";
import { invalid } from "./rules.ts";

const lines = { "content-type": "application/x-ndjson" };
const maxBytes = 200;

/** A library that returns the titles it received, with the shelf of each. */
const transcoder = serveLibrary(
  {
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
  },
  { maxBytes },
);

async function imported(parts: RequestParts, line = "POST /v1/shelves/1/books:import") {
  const answer = await send(transcoder, line, parts);
  return answer.status === 200 ? jsonOf(answer).titles : refusalOf(answer);
}

describe("a client stream of JSON lines", () => {
  const rows: [what: string, body: string, titles: string[]][] = [
    ["one message per line", '{"title":"a"}\n{"title":"b"}\n', ["shelves/1: a", "shelves/1: b"]],
    ["no newline at the end", '{"title":"a"}\n{"title":"b"}', ["shelves/1: a", "shelves/1: b"]],
    ["blank lines", '\n\n{"title":"a"}\n \n\t\n{"title":"b"}\n\n', ["shelves/1: a", "shelves/1: b"]],
    ["Windows line endings", '{"title":"a"}\r\n{"title":"b"}\r\n', ["shelves/1: a", "shelves/1: b"]],
    ["an escaped newline", '{"title":"a\\nb"}\n', ["shelves/1: a\nb"]],
    ["no message", "", []],
    ["nothing but blank lines", "\n\n", []],
  ];
  for (const [what, body, titles] of rows) {
    it(what, async () => {
      expect(await imported({ headers: lines, body })).toEqual(titles);
    });
    it(`${what}, byte by byte`, async () => {
      const bytes = Buffer.from(body);
      const pieces = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
      expect(await imported({ headers: lines, body: chunked(...pieces) })).toEqual(titles);
    });
  }

  it("split within a character", async () => {
    const bytes = Buffer.from('{"title":"é"}\n');
    const body = chunked(bytes.subarray(0, 11), bytes.subarray(11));
    expect(await imported({ headers: lines, body })).toEqual(["shelves/1: é"]);
  });

  for (const type of [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-ndjson; charset=utf-8",
  ]) {
    it(`may have the type ${type}`, async () => {
      expect(await imported({ headers: { "content-type": type }, body: '{"title":"a"}' })).toEqual([
        "shelves/1: a",
      ]);
    });
  }

  it("may be larger than the limit of one message", async () => {
    const body = '{"title":"a"}\n'.repeat(100);
    expect(await imported({ headers: lines, body })).toHaveLength(100);
  });

  it("refuses an oversized message", async () => {
    const body = `{"title":"${"a".repeat(maxBytes)}"}\n`;
    expect(await imported({ headers: lines, body })).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
  });

  it("refuses an oversized message in one piece with others", async () => {
    const body = `{"title":"a"}\n{"title":"${"a".repeat(maxBytes)}"}\n{"title":"b"}\n`;
    expect(await imported({ headers: lines, body })).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
  });

  it("refuses a compressed body that expands far beyond its size", async () => {
    const body = gzipSync(`{"title":"${"a".repeat(100)}"}\n`.repeat(1000));
    expect(body.length).toBeLessThan(2000);
    const headers = { ...lines, "content-encoding": "gzip" };
    expect(await imported({ headers, body })).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
  });

  it("refuses a compressed body with more messages than its size allows", async () => {
    const body = gzipSync("{}\n".repeat(2000));
    const headers = { ...lines, "content-encoding": "gzip" };
    const large = serveLibrary({
      async importBooks(requests) {
        for await (const _request of requests);
        return {};
      },
    });
    const answer = await send(large, "POST /v1/shelves/1/books:import", { headers, body });
    expect(refusalOf(answer)).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
  });

  it("refuses a line without an end once it is too large", async () => {
    const endless = (async function* () {
      for (;;) yield Buffer.from("aaaaaaaaaa");
    })();
    expect(await imported({ headers: lines, body: endless })).toMatchObject({ status: 413 });
  });

  it("joins one long line in tiny pieces only once", async () => {
    const title = "a".repeat(200_000);
    const body = (async function* () {
      for (const character of `{"title":"${title}"}\n`) yield Buffer.from(character);
    })();
    const unbounded = serveLibrary({
      async importBooks(requests) {
        const titles: string[] = [];
        for await (const { book } of requests) titles.push(book?.title ?? "");
        return { titles };
      },
    });
    const joined = vi.spyOn(Buffer, "concat");
    onTestFinished(() => joined.mockRestore());
    const answer = await send(unbounded, "POST /v1/shelves/1/books:import", { headers: lines, body });
    expect(jsonOf(answer).titles).toEqual([title]);
    const joinedBytes = joined.mock.results.reduce((sum, { value }) => sum + value.length, 0);
    expect(joinedBytes).toBeLessThan(2 * title.length);
  });

  const refused: [what: string, body: string, refusal: object][] = [
    ["a line that is not JSON", '{"title":"a"}\nx\n', invalid("JSON_INVALID")],
    ["two messages on one line", '{"title":"a"}{"title":"b"}\n', invalid("JSON_INVALID")],
    ["a message on two lines", '{"title":\n"a"}\n', invalid("JSON_INVALID")],
    ["an array", '[{"title":"a"}]\n', { status: 400, code: "INVALID_ARGUMENT" }],
    ["an unknown field", '{"bogus":1}\n', { status: 400, code: "INVALID_ARGUMENT" }],
    [
      "an integer that is too large for JSON",
      '{"isbn":9007199254740993}\n',
      invalid("FIELD_INVALID", "book.isbn"),
    ],
  ];
  for (const [what, body, refusal] of refused) {
    it(`refuses ${what}`, async () => {
      expect(await imported({ headers: lines, body })).toMatchObject(refusal);
    });
  }

  it("may be compressed", async () => {
    const headers = { ...lines, "content-encoding": "gzip" };
    expect(await imported({ headers, body: gzipSync('{"title":"a"}\n') })).toEqual(["shelves/1: a"]);
  });

  it("may not use an unknown compression", async () => {
    const headers = { ...lines, "content-encoding": "br" };
    const result = await imported({ headers, body: '{"title":"a"}\n' });
    expect(result).toMatchObject({ status: 415, reason: "ENCODING_UNSUPPORTED" });
  });
});

describe("a client stream of one JSON array", () => {
  const rows: [body: string, titles: string[]][] = [
    ['[{"title":"a"},{"title":"b"}]', ["shelves/1: a", "shelves/1: b"]],
    [' [ {"title":"a"} , {"title":"b"} ] ', ["shelves/1: a", "shelves/1: b"]],
    [
      '[{"title":"a,]}\\"["},{"authors":["x","y"],"labels":{"k":"v"},"title":"b"}]',
      ['shelves/1: a,]}"[', "shelves/1: b"],
    ],
    ['[{"title":"\\\\"},{"title":"b"}]', ["shelves/1: \\", "shelves/1: b"]],
    ["[]", []],
    ["[ ]", []],
    ["", []],
    ['{"title":"a"}', ["shelves/1: a"]],
    ["[{}]", ["shelves/1: "]],
  ];
  for (const [body, titles] of rows) {
    it(`${body || "(nothing)"}`, async () => {
      expect(await imported({ body })).toEqual(titles);
    });
  }

  for (const body of [
    "[",
    '[{"title":"a"},]',
    '[,{"title":"a"}]',
    '[{"title":"a"}]]',
    '[{"title":"a"}{"title":"b"}]',
    "x",
  ]) {
    it(`refuses ${body}`, async () => {
      expect(await imported({ body })).toEqual(invalid("JSON_INVALID"));
    });
  }

  it("refuses a duplicate field in an element", async () => {
    const result = await imported({ body: '[{"title":"a","title":"b"}]' });
    expect(result).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
  });

  it("refuses an element of the wrong type", async () => {
    expect(await imported({ body: '[{"title":"a"},1]' })).toMatchObject({
      status: 400,
      code: "INVALID_ARGUMENT",
    });
  });

  it("is limited as a whole, because it is read as a whole", async () => {
    const body = `[${'{"title":"a"},'.repeat(50)}{}]`;
    expect(await imported({ body })).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
  });

  it("may be compressed", async () => {
    const parts = { headers: { "content-encoding": "gzip" }, body: gzipSync('[{"title":"a"}]') };
    expect(await imported(parts)).toEqual(["shelves/1: a"]);
  });
});

describe("a client stream", () => {
  it("applies path and query to every message", async () => {
    const body = '[{"parent":"shelves/2","book":{"title":"a"}},{"book":{"title":"b"}}]';
    expect(await imported({ body }, "POST /v1/books:import")).toEqual(["shelves/2: a", ": b"]);
  });

  it("refuses a message that contradicts the path", async () => {
    const answer = await send(transcoder, "POST /v1/shelves/1/books:import?parent=shelves/2", {
      body: "[{}]",
    });
    expect(refusalOf(answer)).toEqual(invalid("FIELD_CONTRADICTION", "parent"));
  });

  it("has no messages if there is no body", async () => {
    expect(await imported({})).toEqual([]);
  });

  it("refuses other media types", async () => {
    const parts = { headers: { "content-type": "text/plain" }, body: "{}" };
    expect(await imported(parts)).toMatchObject({ status: 415, reason: "MEDIA_TYPE_UNSUPPORTED" });
  });

  it("refuses unknown parameters even if no message arrives", async () => {
    const answer = await send(transcoder, "POST /v1/shelves/1/books:import?bogus=1");
    expect(refusalOf(answer)).toEqual(invalid("PARAMETER_UNKNOWN", "bogus"));
  });
});

describe("a client stream of raw bytes", () => {
  const headers = { "content-type": "text/plain" };

  it("has a message for each received piece", async () => {
    const parts = { headers, body: chunked("a", "b") };
    expect(await imported(parts, "POST /v1/files/x")).toEqual(["x: text/plain a", "x: text/plain b"]);
  });

  it("may be compressed", async () => {
    const parts = { headers: { ...headers, "content-encoding": "gzip" }, body: gzipSync("ab") };
    expect(await imported(parts, "POST /v1/files/x")).toEqual(["x: text/plain ab"]);
  });

  it("may not use an unknown compression", async () => {
    const parts = { headers: { ...headers, "content-encoding": "br" }, body: "ab" };
    expect(await imported(parts, "POST /v1/files/x")).toMatchObject({ status: 415 });
  });
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
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answer.status).toBe(200);
    expect(texts).toMatchObject([{ title: "a!" }, { status: "error", code: "INVALID_ARGUMENT" }]);
  });
});
