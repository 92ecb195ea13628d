/** Record kinds: the calls that create and list them, and where answers name them. */
import { type DescMessage, type JsonObject, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { formatNumber } from "./values.ts";

/** Field names as in JSON. */
interface RecordKind {
  readonly kind: string;
  /** Full name of the service that creates them. */
  readonly service: string;
  readonly id: string;
  /** The first field that is set counts; undefined for records without a state. */
  readonly states?: readonly string[];
  /** Calls that create one, with the answer's field that contains it; "" for the answer itself. */
  readonly creates: Readonly<Record<string, string>>;
  /** Calls that return a new state, likewise. */
  readonly reports?: Readonly<Record<string, string>>;
  /** How to list them. */
  readonly list: {
    /** "Keys". */
    readonly title: string;
    readonly call: string;
    /** The page where such records are created. */
    readonly path: string;
  };
}

export const kinds: readonly RecordKind[] = [
  {
    ...{ kind: "key", service: "kms.KmsService", id: "keyId", states: ["newStatus", "status"] },
    creates: { CreateKey: "result", ImportKey: "result", RotateKey: "newKey" },
    reports: {
      GetKey: "result",
      DisableKey: "result",
      EnableKey: "result",
      RestoreKey: "result",
      DestroyKey: "",
    },
    list: { title: "Keys", call: "ListKeys", path: "keys/manage" },
  },
  {
    ...{ kind: "device", service: "iot.IotService", id: "deviceId", states: ["registrationStatus"] },
    creates: { RegisterDevice: "" },
    list: { title: "Devices", call: "ListDevices", path: "devices" },
  },
  {
    ...{
      kind: "tunnel",
      service: "vpn.VpnService",
      id: "tunnelId",
      states: ["tunnelStatus", "sessionStatus"],
    },
    creates: { RegisterPeer: "" },
    reports: { Disconnect: "" },
    list: { title: "Tunnels", call: "ListTunnels", path: "tunnel" },
  },
  {
    ...{ kind: "multisig wallet", service: "defi.DefiService", id: "walletId" },
    creates: { CreateMultisig: "" },
    list: { title: "Multisig wallets", call: "ListWallets", path: "governance" },
  },
  {
    ...{ kind: "proposal", service: "defi.DefiService", id: "proposalId", states: ["proposalStatus"] },
    creates: { CreateProposal: "proposal" },
    reports: { SignProposal: "proposal", ExecuteProposal: "proposal" },
    list: { title: "Proposals", call: "ListProposals", path: "governance" },
  },
  {
    ...{
      kind: "validator",
      service: "blockchain.BlockchainService",
      id: "validatorAddress",
      states: ["registrationStatus"],
    },
    creates: { RegisterNode: "" },
    list: { title: "Validators", call: "ListValidators", path: "chain" },
  },
  {
    ...{ kind: "token", service: "nft.NftService", id: "tokenId" },
    creates: { Mint: "" },
    list: { title: "Tokens with provenance", call: "ListTokens", path: "provenance" },
  },
  {
    ...{ kind: "contract", service: "dapp.DappService", id: "contractId" },
    creates: { DeployContract: "" },
    list: { title: "Contracts", call: "ListContracts", path: "contracts" },
  },
  {
    ...{ kind: "wallet", service: "wallet.WalletService", id: "walletId" },
    creates: { CreateWallet: "" },
    list: { title: "Wallets", call: "ListWallets", path: "wallets" },
  },
];

/** Fields with names and creation times, for all kinds; the first one that is set counts. */
const nameFields = ["name", "title", "label", "deviceName", "peerName", "alias", "username"];
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

/**
 * Reads a record of a kind.
 *
 * @param request the call's request, which may name the record if the answer does not
 */
export function readRecord(
  { kind, id, states = [] }: RecordKind,
  record: JsonObject,
  request: JsonObject = {},
): FoundRecord {
  const { signers, threshold, damaged, version } = record;
  const names = [
    readFirst(record, nameFields),
    readFirst(request, nameFields),
    Array.isArray(signers)
      ? `${formatNumber(Number(threshold))} of ${formatNumber(signers.length)} signers`
      : "",
  ];
  return {
    kind,
    id: readFirst(record, [id]),
    name: `${names.find((name) => name !== "") ?? ""}${version === undefined ? "" : `, version ${version}`}`,
    // A damaged record has a tag that does not match.
    state: damaged === true ? "DAMAGED" : readFirst(record, states),
    createdAt: readFirst(record, timeFields),
  };
}

/**
 * Finds the record in a call.
 *
 * @param call the call's full name: "kms.KmsService/CreateKey"
 * @param read returns request and answer as JSON; not called for calls without a record
 */
export function findRecord(
  call: string,
  read: () => { readonly request: JsonObject; readonly answer: JsonObject },
): (FoundRecord & { readonly isNew: boolean }) | undefined {
  const [service, name = ""] = call.split("/");
  const kind = kinds
    .filter((one) => one.service === service)
    .find(({ creates, reports = {} }) => Object.hasOwn({ ...creates, ...reports }, name));
  if (kind === undefined) return undefined;
  const { request, answer } = read();
  const field = { ...kind.creates, ...kind.reports }[name];
  const record = readRecord(kind, field ? asObject(answer[field]) : answer, request);
  return record.id === "" ? undefined : { ...record, isNew: Object.hasOwn(kind.creates, name) };
}

/** A message in JSON form. */
export function toObject(desc: DescMessage, message: Message): JsonObject {
  return asObject(toJson(desc, message));
}

export function asObject(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function readFirst(object: JsonObject, names: readonly string[]): string {
  const values = names.map((name) => object[name]);
  return values.find((value) => typeof value === "string" && value !== "")?.toString() ?? "";
}
