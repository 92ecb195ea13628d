/** A minute that shows whether the program works: each service answers over each protocol, and a kill loses nothing. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { servicePackages } from "../../src/services/registry.ts";
import { npmDrivers } from "../interop/drivers.ts";
import { callRest } from "../services/answers.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const device = { deviceName: "thermometer", deviceType: "sensor", simulated: true };
const data = "aGVsbG8=";

/** One call of each service that does its main job and needs no call before it. */
const calls: readonly (readonly [service: string, method: string, rest: string, request: object])[] = [
  ["pqc.TokenService", "Hello", "GET /api/hello", {}],
  ["pqc.PqcService", "SignData", "POST /api/grpc/sign", { data, algorithm: "ML-DSA-65" }],
  ["kms.KmsService", "CreateKey", "POST /api/kms/create-key", { alias: "payments" }],
  ["iot.IotService", "RegisterDevice", "POST /api/iot/register-device", device],
  ["vpn.VpnService", "RegisterPeer", "POST /api/vpn/register-peer", { peerName: "laptop" }],
  ["dapp.DappService", "DualSign", "POST /api/dapp/dual-sign", { data }],
  ["wallet.WalletService", "CreateWallet", "POST /api/wallet/create", { label: "savings" }],
  ["defi.DefiService", "ListWallets", "GET /api/defi/wallets", {}],
  ["blockchain.BlockchainService", "RegisterNode", "POST /api/blockchain/register-node", { name: "first" }],
  ["nft.NftService", "Mint", "POST /api/nft/mint", { name: "First", artworkUri: "ipfs://artwork" }],
];
const protocols = ["gRPC", "gRPC-Web over HTTP/1.1", "Connect over HTTP/1.1"];

let server: RunningServer;
const dataDir = makeTemporaryDirectory(afterAll);
beforeAll(async () => {
  server = await startServer({ dataDir });
});
afterAll(() => server.stop("SIGKILL"));

const post = async (path: string, request: object) =>
  (await callRest(server.url, `POST /api/kms/${path}`, request)).json;
const success = { status: "success" };

describe.each(calls)("%s", (service, method, rest, request) => {
  it.each(protocols)("answers over %s", async (protocol) => {
    const driver = npmDrivers.find(({ name }) => name === `@connectrpc/connect-node, ${protocol}`);
    const outcome = await driver?.call(server.url, { service, method, request: { ...request }, headers: {} });
    expect(outcome).toMatchObject({ answer: success });
  });

  it("answers over REST", async () => {
    const body = rest.startsWith("POST") ? request : undefined;
    expect((await callRest(server.url, rest, body)).json).toMatchObject(success);
  });
});

describe("the calls above", () => {
  it("include one for each package", () => {
    const called = calls.map(([service]) => service.split(".")[0]);
    expect(servicePackages.map(({ name }) => name).filter((name) => !called.includes(name))).toEqual([]);
  });
});

describe("a killed server", () => {
  it("keeps the key created before, and signs with it after a restart", async () => {
    const { result } = (await post("create-key", {})) as { readonly result: { readonly keyId: string } };
    await server.stop("SIGKILL");
    server = await startServer({ dataDir });
    expect(await post("sign", { keyId: result.keyId, data })).toMatchObject(success);
    expect(await post("verify-audit", {})).toMatchObject({ valid: true });
  });
});
