/**
 * A server for Connect's conformance suite, made by the project's own builder:
 * `connectconformance --mode server … -- node test/interop/conformance-server.ts <descriptor set>`.
 *
 * The suite starts one for each configuration, asks for it on stdin and learns on stdout where it listens
 * (connectrpc/conformance, docs/testing_servers.md). Every protocol is on the one port, so only the limit of
 * the request matters.
 */

import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { createFileRegistry, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { pino } from "pino";
import { createServer } from "../../src/server/server.ts";
import { defaultLimits } from "../server/default-limits.ts";
import { conformanceService, createMessage, getMessage, packageName } from "./conformance-service.ts";

const [descriptorSetPath] = process.argv.slice(2);
if (descriptorSetPath === undefined) throw new Error("usage: conformance-server.ts <descriptor set>");
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptorSetPath)));
const requestType = getMessage(registry, `${packageName}.ServerCompatRequest`);
const responseType = getMessage(registry, `${packageName}.ServerCompatResponse`);

/** Bytes of the length (big-endian) before each message on stdin and stdout. */
const lengthBytes = 4;

/** What the server reads of ServerCompatRequest. */
interface ServerRequest extends Message {
  /** 0 stands for no limit. */
  readonly messageReceiveLimit: number;
}

// The descriptors have the message; the interface above is the one field of it that is read.
const request = fromBinary(requestType, (await buffer(process.stdin)).subarray(lengthBytes)) as ServerRequest;
const server = await createServer({
  services: [conformanceService(registry)],
  // On stderr: stdout is the suite's.
  logger: pino({ level: process.env.QSP_TEST_LOG_LEVEL ?? "fatal" }, pino.destination(process.stderr.fd)),
  limits: {
    ...defaultLimits,
    ...(request.messageReceiveLimit > 0 && { maxMessageBytes: request.messageReceiveLimit }),
  },
});
const { address, port } = await server.listen(0, "127.0.0.1");
process.once("SIGTERM", () => void server.close());

const response = toBinary(responseType, createMessage(responseType, { host: address, port }));
const length = Buffer.alloc(lengthBytes);
length.writeUInt32BE(response.length);
process.stdout.write(Buffer.concat([length, response]));
