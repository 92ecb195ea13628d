/**
 * A server for Connect's conformance suite, built with the project's own server builder:
 * `connectconformance --mode server … -- node test/interop/conformance-server.ts <descriptor set>`.
 *
 * The suite starts a server for each configuration, sends the configuration on stdin and reads the address on stdout
 * (connectrpc/conformance, docs/testing_servers.md). All protocols share one port, so only the limit in the request
 * matters.
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

/** Size of the length prefix (big-endian) of each message on stdin and stdout, in bytes. */
const lengthBytes = 4;

/** The fields of ServerCompatRequest that the server reads. */
interface ServerRequest extends Message {
  /** 0 means no limit. */
  readonly messageReceiveLimit: number;
}

// The descriptors have the whole message; the interface above has the one field that the server reads.
const request = fromBinary(requestType, (await buffer(process.stdin)).subarray(lengthBytes)) as ServerRequest;
const server = await createServer({
  services: [conformanceService(registry)],
  // On stderr, because stdout belongs to the suite.
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
