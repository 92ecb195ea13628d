/** The examples of services in the API description, with their recorded answers. */
import {
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import { expect } from "vitest";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { Example, Json } from "../../src/calls/example.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { type AnswerBook, loadExamples, type Members, prepareExample } from "../openapi/call-examples.ts";
import { cleanAnswer } from "../openapi/clean-answer.ts";
import { listRecorded, shapeOf } from "../openapi/read-answers.ts";
import { loadPackages } from "../support/whole-program.ts";
import { type Call, findMethod, toCall } from "./calls.ts";
import type { Tested } from "./client-tests.ts";
import type { Driver } from "./drivers.ts";
import { readAnswer } from "./foreign-client.ts";

const recorded = listRecorded(await loadExamples());
const profiles = collectProfiles(await loadPackages());

/** Makes the call of an example. The answer must be canonical and have the shape of the recorded one. */
export async function testExample(
  { driver, nextServer }: Tested,
  book: AnswerBook,
  example: Example,
): Promise<void> {
  const desc = findMethod(example.rpc);
  const server = nextServer(desc.parent);
  await prepareExample(server.url, example);
  const { request, token } = await book.complete(example);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const call = sendAsStream(desc, toCall(server, desc, request, headers));
  const isStream = desc.methodKind === "server_streaming";
  const wanted = recorded[example.name] ?? null;
  if (getOption(desc, http).responseBody !== "") {
    const parts = await (isStream ? readParts : readWhole)(driver, server.url, call);
    const raws = parts.map((part) => findRaw(desc, part));
    const bytes = Buffer.concat(raws.map(({ data }) => Buffer.from(data, "base64")));
    book.keep(example.name, { body: undefined, bytes });
    const answer = toAnswer(raws[0]?.contentType ?? "", bytes);
    return expect(shapeOf(cleanAnswer(answer))).toEqual(shapeOf(wanted));
  }
  const answer = await (isStream ? readFirst : readOne)(driver, server.url, call);
  if (profiles[desc.parent.typeName]?.restStyle === undefined) readAnswer(desc.output, answer);
  const body = normalize(desc.output, answer);
  book.keep(example.name, { body, bytes: Buffer.from(JSON.stringify(body)) });
  expect(shapeOf(cleanAnswer(body))).toEqual(shapeOf(normalize(desc.output, wanted)));
}

/** REST uploads a body. Other clients send the same bytes in a message. */
function sendAsStream(desc: DescMethod, call: Call): Call {
  if (desc.methodKind !== "client_streaming") return call;
  const data = Buffer.from(JSON.stringify(call.http?.body)).toString("base64");
  return { ...call, request: [{ ...call.request, [getOption(desc, http).body]: { data } } as Members] };
}

async function readOne(driver: Driver, url: string, call: Call): Promise<unknown> {
  const outcome = await driver.call(url, call);
  if ("answer" in outcome) return outcome.answer;
  throw new Error(`the call was refused: ${JSON.stringify(outcome.refusal)}`);
}

async function readFirst(driver: Driver, url: string, call: Call): Promise<unknown> {
  for await (const answer of driver.watch(url, call)) return answer;
  throw new Error("the stream ended without an answer");
}

async function readWhole(driver: Driver, url: string, call: Call): Promise<unknown[]> {
  return [await readOne(driver, url, call)];
}

/** Reads all messages of a stream, whose bytes are one document. REST has the document alone. */
async function readParts(driver: Driver, url: string, call: Call): Promise<unknown[]> {
  return driver.sends === "no streams"
    ? readWhole(driver, url, call)
    : Array.fromAsync(driver.watch(url, call));
}

/** What a recorded answer contains of bytes. */
function toAnswer(contentType: string, bytes: Buffer): Json {
  if (contentType.includes("json")) return JSON.parse(bytes.toString());
  return contentType.startsWith("text/") ? bytes.toString() : bytes.toString("base64");
}

/** google.api.HttpBody in JSON. */
interface Raw {
  readonly contentType: string;
  readonly data: string;
}

/** The bytes of a note or a tile; REST returns nothing else. */
function findRaw(desc: DescMethod, answer: unknown): Raw {
  return ((answer as Members)[getOption(desc, http).responseBody] ?? answer) as Raw;
}

/** Adds the fields that a client may omit. Third-party REST conventions omit zeros. */
function normalize(desc: DescMessage, json: unknown): Members & { readonly [name: string]: Json } {
  const message = fromJson(desc, json as JsonValue, { ignoreUnknownFields: true });
  return toJson(desc, message, { alwaysEmitImplicit: true }) as Members & { readonly [name: string]: Json };
}
