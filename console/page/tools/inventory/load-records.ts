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
import { type Failure, toFailure } from "../../failure.ts";
import { asObject, type FoundRecord, kinds, readRecord, toObject } from "../../record-kinds.ts";
import { settings } from "../../settings.ts";
import { type List, loadList, pageSize } from "../lists.ts";

const services = [
  ...[KmsService, IotService, VpnService, DefiService, BlockchainService],
  ...[NftService, DappService, WalletService],
];

/** The kinds of records that this server can list. */
export const listedKinds = kinds.filter(({ service }) => settings.services.has(service));

/** The records of a kind that are loaded. */
export interface KindList extends List<FoundRecord> {
  /** Why the server does not list them. */
  readonly failure?: Failure;
}

/** What is loaded of each kind. */
export type Inventory = Readonly<Record<string, KindList>>;

/**
 * Loads the next records of each kind.
 *
 * @param chosen one kind; "" for all
 */
export async function loadInventory(caller: Caller, chosen: string, known: Inventory): Promise<Inventory> {
  const missing = listedKinds.filter(
    ({ kind }) => (chosen === "" || kind === chosen) && known[kind]?.nextPageToken !== "",
  );
  const loaded = await Promise.all(
    missing.map(async (kind) => [kind.kind, await loadKind(caller, kind, known[kind.kind])] as const),
  );
  return { ...known, ...Object.fromEntries(loaded) };
}

async function loadKind(caller: Caller, kind: (typeof kinds)[number], known?: KindList): Promise<KindList> {
  const count = (known?.items.length ?? 0) + pageSize;
  try {
    return await loadList(
      (page) => loadPage(caller, kind, page),
      ({ items }) => items,
      count,
      known,
    );
  } catch (thrown) {
    return { items: [], totalSize: 0, ...known, nextPageToken: "", failure: toFailure(thrown) };
  }
}

async function loadPage(
  { call }: Caller,
  kind: (typeof kinds)[number],
  page: Record<string, unknown>,
): Promise<List<FoundRecord>> {
  const method = services
    .flatMap(({ methods }): readonly DescMethod[] => methods)
    .filter((one) => one.parent.typeName === kind.service && one.name === kind.list.call)
    .find((one): one is DescMethodUnary => one.methodKind === "unary");
  if (method === undefined) throw new Error(`the call ${kind.list.call} does not exist`);
  const answer = toObject(method.output, await call(method, page));
  const [records = []] = Object.values(answer).filter((value) => Array.isArray(value));
  return {
    items: records.map((record) => readRecord(kind, asObject(record))),
    nextPageToken: String(answer.nextPageToken ?? ""),
    totalSize: Number(answer.totalSize ?? 0),
  };
}
