/** Table of bombs (small requests that used to cost a server seconds), and how to send one. */
import { gzipSync } from "node:zlib";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { connectHttp2, envelope, type RawAnswer, request } from "../server/raw.ts";

/** A request of at most 64 KB. */
export interface Bomb {
  readonly path: string;
  readonly method?: "GET";
  readonly headers: Record<string, string>;
  readonly body?: Uint8Array;
}

/** Sends a bomb over its own connection, which closes with the test. */
export function sendBomb(url: string, { path, method = undefined, headers, body }: Bomb): Promise<RawAnswer> {
  const session = connectHttp2(url);
  return request(session, { ":path": path, ...(method && { ":method": method }), ...headers }, body);
}

const maxBytes = 4 * 1024 * 1024;
const batch = { rest: "/api/kms/batch-sign", rpc: "/kms.KmsService/BatchSign" };
const readings = { rpc: "/iot.IotService/StreamTelemetry" };
const images = { rpc: "/iot.IotService/UpdateFirmwareStream" };

const listOf = (item: string, bytes = maxBytes - 100): string =>
  `[${item}${`,${item}`.repeat(Math.floor(bytes / (item.length + 1)) - 1)}]`;
const dataOf = (list: string): string => `{"keyId":"k","data":${list}}`;
const membersOf = (name: (index: number) => string, count: number): string =>
  `{${Array.from({ length: count }, (_, index) => `"${name(index)}":1`).join(",")}}`;

/** JSON texts of about 4 MiB, by content. */
const texts: Record<string, string> = {
  "a list of 1.4 million valid elements": dataOf(listOf('""')),
  "a list of 1.4 million elements, the last invalid": dataOf(listOf('""').replace(/""\]$/, "7]")),
  "a list of a million elements after a number of 16 digits": `{"n":1234567890123456,"data":${listOf('"AA"')}}`,
  "two million nested lists": dataOf("[".repeat(2_000_000) + "]".repeat(2_000_000)),
  "endless opening brackets": "[".repeat(maxBytes - 1),
  "800,000 nested objects": `${'{"a":'.repeat(800_000)}1`,
  "15,000 unknown members": membersOf((index) => `m${index}`, 15_000),
  "300,000 members, each a list": membersOf((index) => `m${index % 10}`, 300_000),
  "400,000 members with the same name": membersOf(() => "keyId", 400_000),
  "a member name of 4 MB": `{"${"n".repeat(maxBytes - 100)}":1}`,
  "a member name of 4 MB in a list of messages": `{"data":[{"${"n".repeat(maxBytes - 100)}":1}]}`,
  "a text of 2 million escaped quotes": `{"keyId":"${'\\"'.repeat(2_000_000)}"}`,
  "a text of 600,000 escaped characters": `{"keyId":"${"\\u0416".repeat(690_000)}"}`,
  "a text of 600,000 half surrogate pairs": `{"keyId":"${"\\ud800".repeat(690_000)}"}`,
  "a text of 4 MB where a list belongs": dataOf(`"${"x".repeat(maxBytes - 100)}"`),
  "a base64 value of 4 MB": `{"keyId":"k","data":"${"A".repeat(maxBytes - 100)}"}`,
  "a base64 value of 4 MB with an error at its end": `{"keyId":"k","data":["${"A".repeat(maxBytes - 100)}!"]}`,
  "a number of 4 million digits": `{"keyId":${"1".repeat(maxBytes - 100)}}`,
  "white space": `${" ".repeat(maxBytes - 100)}{}`,
  "a list of 20,000 elements": dataOf(listOf('"AA=="', 19_000 * 7)),
  "not JSON at all": "x".repeat(maxBytes - 1),
};

function writeFields(count: number, write: (writer: BinaryWriter, index: number) => void): Uint8Array {
  const writer = new BinaryWriter();
  for (let index = 0; index < count; index += 1) write(writer, index);
  return writer.finish();
}

/** Protobuf messages of about 4 MiB for BatchSign, whose fields 1 to 3 are a string, a list of bytes, and bytes. */
const messages: Record<string, Uint8Array> = {
  "two million unknown fields": Buffer.from("2801".repeat(2_000_000), "hex"),
  "two million nested groups": Buffer.alloc(maxBytes - 100, 0x2b),
  "two million groups in sequence": Buffer.from("2b2c".repeat(2_000_000), "hex"),
  "two million elements of a list": Buffer.from("1200".repeat(2_000_000), "hex"),
  "one field, two million times": Buffer.from("0a00".repeat(2_000_000), "hex"),
  "a text of 4 MB": writeFields(1, (writer) =>
    writer.tag(1, WireType.LengthDelimited).string("k".repeat(maxBytes - 100)),
  ),
  "a packed list of an unknown field": writeFields(1, (writer) =>
    writer.tag(6, WireType.LengthDelimited).bytes(Buffer.alloc(maxBytes - 100, 1)),
  ),
  "bytes that are not a message": Buffer.alloc(maxBytes - 100, 0xff),
};

const json = "application/json";

/** Wraps one content for each protocol. */
function restOf(text: string): Bomb {
  return {
    path: batch.rest,
    headers: { "content-type": json, "content-encoding": "gzip" },
    body: gzipSync(text),
  };
}

function connectOf(content: string | Uint8Array): Bomb {
  const type = typeof content === "string" ? json : "application/proto";
  const headers = { "content-type": type, "content-encoding": "gzip" };
  return { path: batch.rpc, headers, body: gzipSync(content) };
}

function grpcOf(type: string, content: string | Uint8Array): Bomb {
  return streamOf(batch.rpc, type, envelope(gzipSync(content), 1), { "grpc-encoding": "gzip" });
}

function streamOf(path: string, type: string, body: Uint8Array, more: Record<string, string> = {}): Bomb {
  return { path, headers: { "content-type": type, te: "trailers", ...more }, body };
}

const repeated = (part: Uint8Array, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => part));

const grpcType = "application/grpc";
const connectType = "application/connect+json";
const bigMessage = envelope(gzipSync(Buffer.alloc(maxBytes - 100, 0x2b)), 1);
const bigJson = envelope(gzipSync(`{"deviceId":"${"d".repeat(maxBytes - 100)}"}`), 1);

const streams: Record<string, Bomb> = {
  "gRPC, 12,000 empty messages": streamOf(readings.rpc, grpcType, repeated(envelope(""), 12_000)),
  "gRPC, 9,000 empty chunks": streamOf(
    images.rpc,
    grpcType,
    repeated(envelope(Buffer.from([0x12, 0])), 9000),
  ),
  "Connect, 9,000 JSON messages": streamOf(readings.rpc, connectType, repeated(envelope("{}"), 9000)),
  "gRPC, 12 messages that expand to 4 MiB each": streamOf(images.rpc, grpcType, repeated(bigMessage, 12), {
    "grpc-encoding": "gzip",
  }),
  "Connect, 12 JSON messages that expand to 4 MiB each": streamOf(
    readings.rpc,
    connectType,
    repeated(bigJson, 12),
    { "connect-content-encoding": "gzip" },
  ),
};

const queries: Record<string, Bomb> = {
  "REST, 4,000 query parameters": { path: `/api/kms/keys?${"a=1&".repeat(3900)}`, headers: {} },
  "REST, 7,000 parameters with the same name": {
    path: `/api/kms/keys?${"pageSize=1&".repeat(1300)}`,
    headers: {},
  },
  "REST, a parameter of 1,000 names": { path: `/api/kms/keys?${"a.".repeat(7000)}b=1`, headers: {} },
  "Connect, a query that expands to 4 MiB": {
    path: `/kms.KmsService/ListKeys?encoding=json&compression=gzip&base64=1&message=${gzipSync(`{"x":${listOf("1")}}`).toString("base64url")}`,
    headers: {},
  },
};

/** All bombs by name. */
export function listBombs(): [name: string, bomb: Bomb][] {
  return [
    ...Object.entries(texts).flatMap(([name, text]): [string, Bomb][] => [
      [`REST, ${name}`, restOf(text)],
      [`Connect with JSON, ${name}`, connectOf(text)],
      [`gRPC with JSON, ${name}`, grpcOf("application/grpc+json", text)],
      [`gRPC-Web with JSON, ${name}`, grpcOf("application/grpc-web+json", text)],
    ]),
    ...Object.entries(messages).flatMap(([name, message]): [string, Bomb][] => [
      [`gRPC, ${name}`, grpcOf("application/grpc", message)],
      [`gRPC-Web, ${name}`, grpcOf("application/grpc-web", message)],
      [`Connect, ${name}`, connectOf(message)],
    ]),
    ...Object.entries(streams),
    ...Object.entries(queries),
  ];
}
