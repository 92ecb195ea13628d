/** The records that the server lists for the reader, in one form for all services. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { formatAddress } from "../../address.ts";
import type { Caller } from "../../caller.ts";
import type { RecordKind } from "../../record-sources.ts";
import { formatNumber } from "../../values.ts";

export interface ListedRecord {
  readonly id: string;
  readonly name: string;
  /** Empty for a record without states. */
  readonly state: string;
  /** When it was created; undefined if the list does not say. */
  readonly createdAt?: Timestamp | undefined;
}

export interface RecordPage {
  readonly records: readonly ListedRecord[];
  /** Empty for the last page. */
  readonly nextPageToken: string;
  readonly totalSize: number;
}

export interface RecordList {
  readonly kind: RecordKind;
  /** "Keys". */
  readonly title: string;
  /** Full name of the service that lists them. */
  readonly service: string;
  /** The page where such records are made. */
  readonly path: string;
  readonly load: (caller: Caller, pageToken: string) => Promise<RecordPage>;
}

const pageSize = 10;

/** A damaged record has a tag that does not match. */
function nameState(state: string, isDamaged: boolean | undefined): string {
  return isDamaged === true ? "DAMAGED" : state;
}

export const recordLists: readonly RecordList[] = [
  {
    ...{ kind: "key", title: "Keys", service: KmsService.typeName, path: "keys/manage" },
    load: async ({ call }, pageToken) => {
      const { keys, ...page } = await call(KmsService.method.listKeys, { pageSize, pageToken });
      const records = keys.map(({ keyId, name, alias, status, damaged, createdAt }) => ({
        ...{ id: keyId, name: name ?? alias, state: nameState(status, damaged), createdAt },
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "device", title: "Devices", service: IotService.typeName, path: "devices" },
    load: async ({ call }, pageToken) => {
      const { devices, ...page } = await call(IotService.method.listDevices, { pageSize, pageToken });
      const records = devices.map(({ deviceId, deviceName, registrationStatus, registeredAt }) => ({
        ...{ id: deviceId, name: deviceName, state: registrationStatus, createdAt: registeredAt },
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "tunnel", title: "Tunnels", service: VpnService.typeName, path: "tunnel" },
    load: async ({ call }, pageToken) => {
      const { tunnels, ...page } = await call(VpnService.method.listTunnels, { pageSize, pageToken });
      const records = tunnels.map(({ tunnelId, peerName, sessionStatus, damaged }) => ({
        ...{ id: tunnelId, name: peerName, state: nameState(sessionStatus, damaged) },
      }));
      return { ...page, records };
    },
  },
  {
    ...{
      kind: "multisig wallet",
      title: "Multisig wallets",
      service: DefiService.typeName,
      path: "governance",
    },
    load: async ({ call }, pageToken) => {
      const { wallets, ...page } = await call(DefiService.method.listWallets, { pageSize, pageToken });
      const records = wallets.map(({ walletId, signers, threshold, damaged }) => ({
        id: walletId,
        name: damaged ? "" : `${formatNumber(threshold)} of ${formatNumber(signers.length)} signers`,
        state: nameState("", damaged),
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "proposal", title: "Proposals", service: DefiService.typeName, path: "governance" },
    load: async ({ call }, pageToken) => {
      const { proposals, ...page } = await call(DefiService.method.listProposals, { pageSize, pageToken });
      const records = proposals.map(({ proposalId, title, proposalStatus, damaged, createdAt }) => ({
        ...{ id: proposalId, name: title, state: nameState(proposalStatus, damaged), createdAt },
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "validator", title: "Validators", service: BlockchainService.typeName, path: "chain" },
    load: async ({ call }, pageToken) => {
      const { validators, ...page } = await call(BlockchainService.method.listValidators, {
        ...{ pageSize, pageToken },
      });
      const records = validators.map(({ validatorAddress, name, registrationStatus, registeredAt }) => ({
        ...{ id: validatorAddress, name, state: registrationStatus, createdAt: registeredAt },
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "token", title: "Tokens with provenance", service: NftService.typeName, path: "provenance" },
    load: async ({ call }, pageToken) => {
      const { tokens, ...page } = await call(NftService.method.listTokens, { pageSize, pageToken });
      const records = tokens.map(({ tokenId, name, damaged }) => ({
        ...{ id: tokenId, name, state: nameState("", damaged) },
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "contract", title: "Contracts", service: DappService.typeName, path: "contracts" },
    load: async ({ call }, pageToken) => {
      const { contracts, ...page } = await call(DappService.method.listContracts, { pageSize, pageToken });
      const records = contracts.map(({ contractId, name, deployedAt, damaged }) => ({
        ...{ id: contractId, name, state: nameState("", damaged), createdAt: deployedAt },
      }));
      return { ...page, records };
    },
  },
  {
    ...{ kind: "wallet", title: "Wallets", service: WalletService.typeName, path: "wallets" },
    load: async ({ call }, pageToken) => {
      const { wallets, ...page } = await call(WalletService.method.listWallets, { pageSize, pageToken });
      const records = wallets.map(({ walletId, label, createdAt, damaged }) => ({
        ...{ id: walletId, name: label, state: nameState("", damaged), createdAt },
      }));
      return { ...page, records };
    },
  },
];

/** Where the reader can work with a record: a key in the key manager, others in their story. */
export function linkRecord(kind: RecordKind, path: string, id: string): string {
  return kind === "key" ? formatAddress("keys/manage", { key: id }) : formatAddress(path, {});
}
