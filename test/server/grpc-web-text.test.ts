import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ItemSchema } from "../gen/probing/probe_pb.ts";
import { serveProbe } from "./probe.ts";
import {
  connectHttp2,
  envelope,
  grpcStatusOf,
  type RawAnswer,
  readEnvelopes,
  readStream,
  type SameRequest,
  versions,
} from "./raw.ts";

const item = (text: string) => envelope(toBinary(ItemSchema, create(ItemSchema, { text })));
const textType = "application/grpc-web-text";

/** Decodes like the npm client: in groups of four characters, any of which may be padded. */
function decodeGroups(body: Buffer): Buffer {
  const text = body.toString();
  expect(text).toMatch(/^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)*$/);
  return Buffer.concat((text.match(/.{4}/g) ?? []).map((group) => Buffer.from(group, "base64")));
}

/** The texts of the messages of an answer, and its status. */
function readAnswer({ headers, body, ...rest }: RawAnswer) {
  const bytes = decodeGroups(body);
  const messages = readEnvelopes(bytes).filter(({ flags }) => flags === 0);
  const texts = messages.map(({ message }) => fromBinary(ItemSchema, message).text);
  return { type: headers["content-type"], texts, ...grpcStatusOf({ headers, body: bytes, ...rest }) };
}

const ask = "/probing.Probe/Ask";
const watch = "/probing.Probe/Watch";
const post = (path: string, type: string, body: string): SameRequest => {
  return { method: "POST", path, headers: { "content-type": type }, body };
};
const [, { ask: askOver2 }] = versions;
const send = async (path: string, body: string, type = textType): Promise<ReturnType<typeof readAnswer>> => {
  return readAnswer(await askOver2(await serveProbe(), post(path, type, body)));
};

describe.each(versions)("gRPC-Web in text mode over $over", ({ ask: askOver }) => {
  it.each([textType, `${textType}+proto`])("answers a unary call in the same mode: %s", async (type) => {
    const answer = await askOver(await serveProbe(), post(ask, type, item("hello").toString("base64")));
    const expected = { type: `${textType}+proto`, texts: ["hello"], status: 0, reason: undefined };
    expect(readAnswer(answer)).toEqual(expected);
  });

  it("sends each message of a stream at once, with its own padding, and the status of its failure", async () => {
    const texts = ["", "a", "ab", "abc"];
    const server = await serveProbe({
      async *watch() {
        for (const text of texts) yield { text };
        throw new ConnectError("no more", Code.DataLoss);
      },
    });
    const answer = await askOver(server, post(watch, textType, item("").toString("base64")));
    expect(readAnswer(answer)).toMatchObject({ texts, status: Code.DataLoss });
    expect(String(answer.body)).toContain(item("a").toString("base64"));
  });
});

describe("a gRPC-Web request in text mode", () => {
  it("may have padding wherever its sender flushed", async () => {
    const bytes = item("a message of some length");
    for (const cut of [1, 2, 3, 4, 5, 6, 7]) {
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut)];
      const text = parts.map((part) => part.toString("base64")).join("");
      expect(await send(ask, text)).toMatchObject({ texts: ["a message of some length"], status: 0 });
    }
  });

  it("may arrive one character at a time", async () => {
    const { url } = await serveProbe();
    const stream = connectHttp2(url).request({ ":method": "POST", ":path": ask, "content-type": textType });
    for (const character of item("pieces").toString("base64")) {
      stream.write(character);
      // One event-loop turn for each, so that Node sends them separately.
      await new Promise(setImmediate);
    }
    stream.end();
    const { body } = await readStream(stream);
    expect(decodeGroups(body).toString("latin1")).toContain("pieces");
  });

  it("may have JSON messages", async () => {
    const body = envelope('{"text":"hi"}').toString("base64");
    const answer = await askOver2(await serveProbe(), post(ask, `${textType}+json`, body));
    expect(answer.headers["content-type"]).toBe(`${textType}+json`);
    expect(decodeGroups(answer.body).toString()).toContain('{"text":"hi"');
  });

  const valid = item("hello").toString("base64");
  it.each([
    ["that ends in the middle of a group", valid.slice(0, -1), "BODY_INCOMPLETE"],
    ["that ends in the middle of its message", valid.slice(0, -4), "BODY_INCOMPLETE"],
    ["with a space", ` ${valid}`, "MESSAGE_MALFORMED"],
    ["with a line break at its end", `${valid}\n`, "MESSAGE_MALFORMED"],
    ["in the URL-safe alphabet", `${valid.slice(0, 8)}-_-_${valid.slice(8)}`, "MESSAGE_MALFORMED"],
    ["with padding at the start of a group", `====${valid}`, "MESSAGE_MALFORMED"],
    ["with a character after padding", `AA=A${valid}`, "MESSAGE_MALFORMED"],
    ["in binary", item("hello").toString("latin1"), "MESSAGE_MALFORMED"],
  ])("is refused %s", async (_what, body, reason) => {
    for (const path of [ask, watch]) expect((await send(path, body)).reason).toBe(reason);
  });

  it("applies the limit to its message, not to its text", async () => {
    const largest = "x".repeat(16_000);
    // A text of 128 to 16383 bytes has three bytes before it in its message.
    const server = await serveProbe({}, { maxMessageBytes: largest.length + 3 });
    const ofText = (text: string) => askOver2(server, post(ask, textType, item(text).toString("base64")));
    expect(readAnswer(await ofText(largest))).toMatchObject({ texts: [largest], status: 0 });
    expect(readAnswer(await ofText(`${largest}x`)).reason).toBe("BODY_TOO_LARGE");
  });
});
