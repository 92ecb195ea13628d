/** A minute that shows whether the program works: each service answers over each protocol, and a kill loses nothing. */
import { type DescMethodUnary, type DescService, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
import { servicePackages } from "../../src/services/registry.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

type Json = Readonly<Record<string, JsonValue>>;

/** One call of each service that does its main job and needs no call before it. */
const calls: readonly (readonly [service: DescService, method: string, rest: string, request: Json])[] = [
  [TokenService, "hello", "GET /api/hello", {}],
  [PqcService, "signData", "POST /api/grpc/sign", { data: "aGVsbG8=", algorithm: "ML-DSA-65" }],
  [KmsService, "createKey", "POST /api/kms/create-key", { alias: "payments", algorithm: "ML-DSA-65" }],
  [
    IotService,
    "registerDevice",
    "POST /api/iot/register-device",
    { deviceName: "thermometer", deviceType: "sensor", simulated: true },
  ],
  [VpnService, "registerPeer", "POST /api/vpn/register-peer", { peerName: "laptop" }],
  [DappService, "dualSign", "POST /api/dapp/dual-sign", { data: "aGVsbG8=" }],
  [WalletService, "createWallet", "POST /api/wallet/create", { label: "savings" }],
  [DefiService, "listWallets", "GET /api/defi/wallets", {}],
  [BlockchainService, "registerNode", "POST /api/blockchain/register-node", { name: "validator 1" }],
  [NftService, "mint", "POST /api/nft/mint", { name: "First", artworkUri: "ipfs://artwork" }],
];

let server: RunningServer;
const dataDir = makeTemporaryDirectory(afterAll);
beforeAll(async () => {
  server = await startServer({ dataDir });
});
afterAll(() => server.stop("SIGKILL"));

const transports: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
};

async function callRpc(
  over: string,
  service: DescService,
  name: string,
  request: Json,
): Promise<JsonValue | undefined> {
  const method = service.method[name] as DescMethodUnary;
  const transport = transports[over]?.(server.url);
  const input = fromJson(method.input, request);
  const answer = await transport?.unary(method, undefined, undefined, undefined, input);
  return answer && toJson(method.output, answer.message);
}

async function callRest(rest: string, request: Json): Promise<unknown> {
  const [method = "", path = ""] = rest.split(" ");
  const headers = { "content-type": "application/json" };
  const body = method === "POST" ? { body: JSON.stringify(request), headers } : {};
  return (await fetch(server.url + path, { method, ...body })).json();
}

const success = { status: "success" };

describe.each(calls)("$typeName", (service, method, rest, request) => {
  it.each(Object.keys(transports))("answers over %s", async (over) => {
    expect(await callRpc(over, service, method, request)).toMatchObject(success);
  });

  it("answers over REST", async () => {
    expect(await callRest(rest, request)).toMatchObject(success);
  });
});

describe("the calls above", () => {
  it("include one for each package", () => {
    const called = calls.map(([{ typeName }]) => typeName.split(".")[0]);
    expect(servicePackages.map(({ name }) => name).filter((name) => !called.includes(name))).toEqual([]);
  });
});

describe("a killed server", () => {
  it("keeps the key created before, and signs with it after a restart", async () => {
    const key = await callRest("POST /api/kms/create-key", { alias: "kept" });
    const { result } = key as { readonly result: { readonly keyId: string } };
    await server.stop("SIGKILL");
    server = await startServer({ dataDir });
    const signed = await callRest("POST /api/kms/sign", { keyId: result.keyId, data: "aGVsbG8=" });
    expect(signed).toMatchObject(success);
    expect(await callRest("POST /api/kms/verify-audit", {})).toMatchObject({ valid: true });
  });
});
