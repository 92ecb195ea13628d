/** Loads the reader's records from the server. */
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { asObject, type FoundRecord, kinds, readRecord, toObject } from "../../record-kinds.ts";
import { settings } from "../../settings.ts";

const services = [
  ...[KmsService, IotService, VpnService, DefiService, BlockchainService],
  ...[NftService, DappService, WalletService],
];

/** The kinds of records that this server can list. */
export const listedKinds = kinds.flatMap((kind) =>
  kind.list !== undefined && settings.services.has(kind.service) ? [{ ...kind, list: kind.list }] : [],
);

export type ListedKind = (typeof listedKinds)[number];

export interface RecordPage {
  readonly records: readonly FoundRecord[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  readonly totalSize: number;
}

const pageSize = 10;

export async function loadRecords(
  { call }: Caller,
  kind: ListedKind,
  pageToken: string,
): Promise<RecordPage> {
  const method = services
    .flatMap(({ methods }): readonly DescMethod[] => methods)
    .filter((one) => one.parent.typeName === kind.service && one.name === kind.list.call)
    .find((one): one is DescMethodUnary => one.methodKind === "unary");
  if (method === undefined) throw new Error(`the call ${kind.list.call} does not exist`);
  const answer = toObject(method.output, await call(method, { pageSize, pageToken }));
  const [records = []] = Object.values(answer).filter((value) => Array.isArray(value));
  return {
    records: records.map((record) => readRecord(kind, asObject(record))),
    nextPageToken: String(answer.nextPageToken ?? ""),
    totalSize: Number(answer.totalSize ?? 0),
  };
}
