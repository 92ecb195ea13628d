/** Service clients with our typed interface, backed by third-party programs. */
import { isDeepStrictEqual } from "node:util";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import type { Members } from "../openapi/call-examples.ts";
import { type ForeignServer, type Outcome, toCall } from "./calls.ts";
import { type Driver, nameOf } from "./drivers.ts";

/**
 * Creates a client whose calls a driver makes. Every answer must be "success" and in the canonical ProtoJSON form.
 *
 * Drivers receive all requests at the start, so no request of a stream can depend on an answer.
 *
 * @param nextServer returns the server for each call
 */
export function createForeignClient<Service extends DescService>(
  service: Service,
  driver: Driver,
  nextServer: (service: DescService) => ForeignServer,
): Client<Service> {
  const transport: Transport = {
    async unary(method, _signal, _timeoutMs, header, input) {
      const server = nextServer(service);
      const outcome = await driver.call(
        server.url,
        toCall(server, method, toRequest(method.input, input), toHeaders(header)),
      );
      return { ...noHeaders(method), method, stream: false, message: readOutcome(method.output, outcome) };
    },
    async stream(method, signal, _timeoutMs, header, input) {
      const server = nextServer(service);
      const requests = await Array.fromAsync(input, (message) => toRequest(method.input, message));
      const request = method.methodKind === "server_streaming" ? (requests[0] ?? {}) : requests;
      const call = toCall(server, method, request, toHeaders(header));
      const message =
        method.methodKind === "client_streaming"
          ? send(method.output, driver.call(server.url, call))
          : receive(method.output, driver.watch(server.url, call, signal));
      return { ...noHeaders(method), method, stream: true, message };
    },
  };
  return createClient(service, transport);
}

function toRequest<Desc extends DescMessage>(desc: Desc, message: MessageInitShape<Desc>): Members {
  return toJson(desc, create(desc, message)) as Members;
}

function toHeaders(header?: ConstructorParameters<typeof Headers>[0]): Record<string, string> {
  return Object.fromEntries(new Headers(header));
}

function noHeaders({ parent }: DescMethod): { service: DescService; header: Headers; trailer: Headers } {
  return { service: parent, header: new Headers(), trailer: new Headers() };
}

async function* send<Desc extends DescMessage>(desc: Desc, outcome: Promise<Outcome>) {
  yield readOutcome(desc, await outcome);
}

async function* receive<Desc extends DescMessage>(desc: Desc, answers: AsyncIterable<unknown>) {
  for await (const answer of answers) yield readAnswer(desc, answer);
}

function readOutcome<Desc extends DescMessage>(desc: Desc, outcome: Outcome): MessageShape<Desc> {
  if ("answer" in outcome) return readAnswer(desc, outcome.answer);
  const { code, reason = "" } = outcome.refusal;
  const details = [{ desc: ErrorInfoSchema, value: { reason } }];
  throw new ConnectError("as the driver reports", codes.get(code) ?? Code.Unknown, undefined, details);
}

/** Codes by their names in JSON. */
const codes = new Map(
  Object.values(Code)
    .filter((code) => typeof code === "number")
    .map((code) => [nameOf(code), code]),
);

/**
 * Parses an answer of our services.
 *
 * @throws Error if it is not canonical
 */
export function readAnswer<Desc extends DescMessage>(desc: Desc, answer: unknown): MessageShape<Desc> {
  const message = fromJson(desc, answer as JsonValue);
  const canonical = { ...(toJson(desc, message, { alwaysEmitImplicit: true }) as object), status: "success" };
  if (isDeepStrictEqual(answer, canonical)) return message;
  throw new Error(`${JSON.stringify(answer)} is not canonical; that would be ${JSON.stringify(canonical)}`);
}
