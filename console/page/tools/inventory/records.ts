/** Kinds of records, and how to load the reader's records of each kind from the server. */
import { type DescMethodUnary, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
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
import { settings } from "../../settings.ts";
import { formatNumber } from "../../values.ts";
import { type List, loadList } from "../lists.ts";

/** Field names as in JSON. */
interface RecordKind {
  readonly kind: string;
  /** "Keys". */
  readonly title: string;
  /** The page where such records are created. */
  readonly path: string;
  readonly list: DescMethodUnary;
  readonly id: string;
  /** Undefined for records without a state. */
  readonly state?: string;
}

/** By the records' kind. */
export const kinds: readonly RecordKind[] = [
  {
    ...{ kind: "key", title: "Keys", path: "keys/manage" },
    ...{ list: KmsService.method.listKeys, id: "keyId", state: "status" },
  },
  {
    ...{ kind: "device", title: "Devices", path: "devices" },
    ...{ list: IotService.method.listDevices, id: "deviceId", state: "registrationStatus" },
  },
  {
    ...{ kind: "tunnel", title: "Tunnels", path: "tunnel" },
    ...{ list: VpnService.method.listTunnels, id: "tunnelId", state: "sessionStatus" },
  },
  {
    ...{ kind: "multisig wallet", title: "Multisig wallets", path: "governance" },
    ...{ list: DefiService.method.listWallets, id: "walletId" },
  },
  {
    ...{ kind: "proposal", title: "Proposals", path: "governance" },
    ...{ list: DefiService.method.listProposals, id: "proposalId", state: "proposalStatus" },
  },
  {
    ...{ kind: "validator", title: "Validators", path: "chain" },
    ...{ list: BlockchainService.method.listValidators, id: "validatorAddress", state: "registrationStatus" },
  },
  {
    ...{ kind: "token", title: "Tokens with provenance", path: "provenance" },
    ...{ list: NftService.method.listTokens, id: "tokenId" },
  },
  {
    ...{ kind: "contract", title: "Contracts", path: "contracts" },
    ...{ list: DappService.method.listContracts, id: "contractId" },
  },
  {
    ...{ kind: "wallet", title: "Wallets", path: "wallets" },
    ...{ list: WalletService.method.listWallets, id: "walletId" },
  },
];

/** The kinds that this server can list. */
export const listedKinds = kinds.filter(({ list }) => settings.services.has(list.parent.typeName));

/** Fields with names and creation times, for all kinds; the first one that is set counts. */
const nameFields = ["name", "title", "label", "deviceName", "peerName", "alias"];
const timeFields = ["createdAt", "registeredAt", "deployedAt"];

export interface FoundRecord {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  /** Empty for a record without a state. */
  readonly state: string;
  /** As sent by the server (RFC 3339); empty if absent. */
  readonly createdAt: string;
}

/** Reads a record of a kind. */
export function readRecord({ kind, id, state = "" }: RecordKind, record: JsonObject): FoundRecord {
  const { signers, threshold, damaged, version } = record;
  const count = Array.isArray(signers)
    ? `${formatNumber(Number(threshold))} of ${formatNumber(signers.length)} signers`
    : "";
  return {
    kind,
    id: readFirst(record, [id]),
    name: `${readFirst(record, nameFields) || count}${version === undefined ? "" : `, version ${version}`}`,
    // A damaged record has a tag that does not match.
    state: damaged === true ? "DAMAGED" : readFirst(record, [state]),
    createdAt: readFirst(record, timeFields),
  };
}

function readFirst(object: JsonObject, names: readonly string[]): string {
  const values = names.map((name) => object[name]);
  return values.find((value) => typeof value === "string" && value !== "")?.toString() ?? "";
}

/** The records of a kind that are loaded. */
interface KindList extends List<FoundRecord> {
  /** Why the server does not list them. */
  readonly failure?: Failure;
}

/** What is loaded of each kind. */
export type Inventory = Readonly<Record<string, KindList>>;

/** Records to load at a time: the page sorts them. */
const pageSize = 200;

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

async function loadKind({ call }: Caller, kind: RecordKind, known?: KindList): Promise<KindList> {
  const loadPage = async (page: Record<string, unknown>): Promise<List<FoundRecord>> => {
    const answer = asObject(toJson(kind.list.output, await call(kind.list, page)));
    const [records = []] = Object.values(answer).filter((value) => Array.isArray(value));
    return {
      items: records.map((record) => readRecord(kind, asObject(record))),
      nextPageToken: String(answer.nextPageToken ?? ""),
      totalSize: Number(answer.totalSize ?? 0),
    };
  };
  try {
    return await loadList(loadPage, ({ items }) => items, (known?.items.length ?? 0) + pageSize, known);
  } catch (thrown) {
    return { items: [], totalSize: 0, ...known, nextPageToken: "", failure: toFailure(thrown) };
  }
}

function asObject(value: JsonValue): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
