/** A client of @connectrpc/connect-node with the generated code. */
import {
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type DescService,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Call, JsonRequest } from "./calls.ts";

const services: readonly DescService[] = [
  PqcService,
  TokenService,
  KmsService,
  IotService,
  VpnService,
  DappService,
  WalletService,
  DefiService,
  BlockchainService,
  NftService,
];

/** Makes a call that has one answer, with requests and answer in JSON. @throws ConnectError */
export async function callConnect(
  transport: Transport,
  call: Call,
  headers: Readonly<Record<string, string>>,
): Promise<unknown> {
  const desc = findMethod(call);
  if (desc.methodKind === "unary") {
    const message = fromJson(desc.input, call.request as JsonValue);
    const answer = await transport.unary(desc as DescMethodUnary, undefined, undefined, headers, message);
    return toJsonAnswer(desc.output, answer.message);
  }
  const [answer] = await Array.fromAsync(await openStream(transport, desc, call, headers));
  if (answer === undefined) throw new Error(`${desc.name} has no answer`);
  return toJsonAnswer(desc.output, answer);
}

/** Makes a call that is answered with a stream, until the signal ends it. */
export async function* watchConnect(
  transport: Transport,
  call: Call,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const desc = findMethod(call);
  for await (const message of await openStream(transport, desc, call, headers, signal))
    yield toJsonAnswer(desc.output, message);
}

async function openStream(
  transport: Transport,
  desc: DescMethod,
  call: Call,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<AsyncIterable<Message>> {
  if (desc.methodKind === "unary") throw new Error(`${desc.name} has no stream`);
  const messages = readMessages(desc.input, call);
  const { message } = await transport.stream(
    desc as DescMethodStreaming,
    signal,
    undefined,
    headers,
    messages,
  );
  return message;
}

async function* readMessages(desc: DescMessage, { request }: Call): AsyncGenerator<Message> {
  const messages: readonly JsonRequest[] = Array.isArray(request) ? request : [request];
  for (const message of messages) yield fromJson(desc, message as JsonValue);
}

function toJsonAnswer(desc: DescMessage, message: Message): unknown {
  return toJson(desc, message, { alwaysEmitImplicit: true });
}

function findMethod({ service, method }: Call): DescMethod {
  const methods = services.find(({ typeName }) => typeName === service)?.methods ?? [];
  const desc = methods.find(({ name }) => name === method);
  if (desc === undefined) throw new Error(`${service} has no ${method}`);
  return desc;
}
