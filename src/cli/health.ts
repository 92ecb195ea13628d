/** `qsp health`: how all services are. */
import { Code, ConnectError } from "@connectrpc/connect";
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
import type { ApiClient } from "./client.ts";
import { exitCodes, findReason } from "./exit-codes.ts";
import { table } from "./output.ts";
import type { Verb } from "./verb.ts";

interface Probe {
  readonly service: string;
  ask(server: ApiClient): Promise<{ readonly serviceStatus: string }>;
}

const probes: readonly Probe[] = [
  { service: PqcService.typeName, ask: (server) => server.ask(PqcService.method.getHealth, {}) },
  { service: TokenService.typeName, ask: (server) => server.ask(TokenService.method.getHealth, {}) },
  { service: KmsService.typeName, ask: (server) => server.ask(KmsService.method.getHealth, {}) },
  { service: IotService.typeName, ask: (server) => server.ask(IotService.method.getHealth, {}) },
  { service: VpnService.typeName, ask: (server) => server.ask(VpnService.method.getHealth, {}) },
  { service: DappService.typeName, ask: (server) => server.ask(DappService.method.getHealth, {}) },
  { service: WalletService.typeName, ask: (server) => server.ask(WalletService.method.getHealth, {}) },
  { service: DefiService.typeName, ask: (server) => server.ask(DefiService.method.getHealth, {}) },
  {
    service: BlockchainService.typeName,
    ask: (server) => server.ask(BlockchainService.method.getHealth, {}),
  },
  { service: NftService.typeName, ask: (server) => server.ask(NftService.method.getHealth, {}) },
];

export const healthVerbs: readonly Verb[] = [
  {
    name: "health",
    operands: [],
    options: {},
    meaning:
      "Tells how each service is. The exit code is 1 if one is DOWN; one that is not served is not counted.",
    example: "qsp health",
    async run({ output, server }) {
      const found = await Promise.all(probes.map((probe) => askHealth(server, probe)));
      output.tell(
        { services: Object.fromEntries(found.map(({ service, serviceStatus }) => [service, serviceStatus])) },
        table(
          ["SERVICE", "STATUS"],
          found.map(({ service, serviceStatus }) => [service, serviceStatus]),
        ),
      );
      return found.some(({ serviceStatus }) => serviceStatus === "DOWN") ? exitCodes.no : exitCodes.done;
    },
  },
];

interface Health {
  readonly service: string;
  /** "UP", "DOWN" or "NOT_SERVED". */
  readonly serviceStatus: string;
}

async function askHealth(server: ApiClient, { service, ask }: Probe): Promise<Health> {
  try {
    const { serviceStatus } = await ask(server);
    return { service, serviceStatus };
  } catch (error) {
    // Without a reason it is no server of ours that says so.
    const isOurs = error instanceof ConnectError && findReason(error) !== undefined;
    if (isOurs && error.code === Code.Unimplemented) return { service, serviceStatus: "NOT_SERVED" };
    throw error;
  }
}
