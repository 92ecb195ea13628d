/**
 * Descriptors of all services that a server can offer, by client name.
 *
 * Files in this folder import generated code by relative path: `#gen` resolves only inside this package, and
 * TypeScript would leave it in the published declarations.
 */
import { BlockchainService } from "../../gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "../../gen/dapp/dapp_service_pb.ts";
import { DefiService } from "../../gen/defi/defi_service_pb.ts";
import { Authorization } from "../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { KeyManagementService } from "../../gen/google/cloud/kms/v1/service_pb.ts";
import { Locations } from "../../gen/google/cloud/location/locations_pb.ts";
import { Health } from "../../gen/grpc/health/v1/health_pb.ts";
import { IotService } from "../../gen/iot/iot_service_pb.ts";
import { KmsService } from "../../gen/kms/kms_service_pb.ts";
import { NftService } from "../../gen/nft/nft_service_pb.ts";
import { AuthorizationService } from "../../gen/oauth/authorization_service_pb.ts";
import { IdentityLogService } from "../../gen/pqc/identity_log_service_pb.ts";
import { PqcService } from "../../gen/pqc/pqc_service_pb.ts";
import { TokenService } from "../../gen/pqc/token_service_pb.ts";
import { LogService } from "../../gen/tlog/log_service_pb.ts";
import { RepositoryService } from "../../gen/tuf/repository_service_pb.ts";
import { VpnService } from "../../gen/vpn/vpn_service_pb.ts";
import { WalletService } from "../../gen/wallet/wallet_service_pb.ts";
import { WireguardService } from "../../gen/wireguard/wireguard_service_pb.ts";

/** Written out, because TypeScript would otherwise inline each descriptor into the declarations. */
export interface Services {
  /** Signatures, key exchange and tokens without stored keys. */
  readonly pqc: typeof PqcService;
  /** Tokens, and two calls that require one. */
  readonly token: typeof TokenService;
  /** Logins, and changes to users and clients. */
  readonly identityLog: typeof IdentityLogService;
  /** Stored keys and their audit log. */
  readonly kms: typeof KmsService;
  /** Devices. */
  readonly iot: typeof IotService;
  /** A VPN gateway. */
  readonly vpn: typeof VpnService;
  /** Contracts. */
  readonly dapp: typeof DappService;
  /** Wallets. */
  readonly wallet: typeof WalletService;
  /** N-of-M governance. */
  readonly defi: typeof DefiService;
  /** A blockchain. */
  readonly blockchain: typeof BlockchainService;
  /** Tokens with signed metadata. */
  readonly nft: typeof NftService;
  /** Verifiable logs of audit entries and blocks. */
  readonly tlog: typeof LogService;
  /** Firmware in repositories of The Update Framework. */
  readonly tuf: typeof RepositoryService;
  /** Pre-shared keys for WireGuard. */
  readonly wireguard: typeof WireguardService;
  /** OAuth 2.0 for machine clients. */
  readonly oauth: typeof AuthorizationService;
  /** Authorization decisions for Envoy. */
  readonly envoyAuth: typeof Authorization;
  /** Google Cloud KMS. */
  readonly googleKms: typeof KeyManagementService;
  /** Locations of Google Cloud KMS. */
  readonly googleLocations: typeof Locations;
  /** The standard gRPC health service. */
  readonly health: typeof Health;
}

/** Descriptors for `createClient` from @connectrpc/connect and for reflection. */
export const services: Services = {
  pqc: PqcService,
  token: TokenService,
  identityLog: IdentityLogService,
  kms: KmsService,
  iot: IotService,
  vpn: VpnService,
  dapp: DappService,
  wallet: WalletService,
  defi: DefiService,
  blockchain: BlockchainService,
  nft: NftService,
  tlog: LogService,
  tuf: RepositoryService,
  wireguard: WireguardService,
  oauth: AuthorizationService,
  envoyAuth: Authorization,
  googleKms: KeyManagementService,
  googleLocations: Locations,
  health: Health,
};
