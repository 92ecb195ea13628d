/** Which calls create records, and where their answers name them. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

export type RecordKind =
  | "key"
  | "device"
  | "tunnel"
  | "contract"
  | "wallet"
  | "multisig wallet"
  | "proposal"
  | "token"
  | "validator"
  | "log-in token";

interface Source {
  readonly kind: RecordKind;
  /** Whether the call creates the record; others report a new state of it. */
  readonly isNew: boolean;
  /** The field of the answer that contains the record; the answer itself if left out. */
  readonly inField?: string;
  /** Fields of the record; the first that is set counts. */
  readonly id: readonly string[];
  readonly name?: readonly string[];
  readonly state?: string;
  /** Fields of the request that name the record. */
  readonly requestName?: string;
}

const key = {
  kind: "key",
  inField: "result",
  id: ["keyId"],
  name: ["name", "alias"],
  state: "status",
} as const;
const proposal = {
  kind: "proposal",
  inField: "proposal",
  id: ["proposalId"],
  name: ["title"],
  state: "proposalStatus",
} as const;
const logIn = { kind: "log-in token", isNew: true, id: ["expiresAt"], requestName: "username" } as const;

/** By the name of the call. */
export const sources: Readonly<Record<string, Source>> = {
  "kms.KmsService/CreateKey": { ...key, isNew: true },
  "kms.KmsService/ImportKey": { ...key, isNew: true },
  "kms.KmsService/RotateKey": { ...key, isNew: true, inField: "newKey" },
  "kms.KmsService/GetKey": { ...key, isNew: false },
  "kms.KmsService/DisableKey": { ...key, isNew: false },
  "kms.KmsService/EnableKey": { ...key, isNew: false },
  "kms.KmsService/RestoreKey": { ...key, isNew: false },
  "kms.KmsService/DestroyKey": { kind: "key", isNew: false, id: ["keyId"], state: "newStatus" },
  "iot.IotService/RegisterDevice": {
    ...{
      kind: "device",
      isNew: true,
      id: ["deviceId"],
      requestName: "deviceName",
      state: "registrationStatus",
    },
  },
  "vpn.VpnService/RegisterPeer": { kind: "tunnel", isNew: true, id: ["tunnelId"], requestName: "peerName" },
  "vpn.VpnService/Disconnect": { kind: "tunnel", isNew: false, id: ["tunnelId"], state: "tunnelStatus" },
  "dapp.DappService/DeployContract": { kind: "contract", isNew: true, id: ["contractId"], name: ["name"] },
  "wallet.WalletService/CreateWallet": { kind: "wallet", isNew: true, id: ["walletId"], name: ["label"] },
  "defi.DefiService/CreateMultisig": { kind: "multisig wallet", isNew: true, id: ["walletId"] },
  "defi.DefiService/CreateProposal": { ...proposal, isNew: true },
  "defi.DefiService/SignProposal": { ...proposal, isNew: false },
  "defi.DefiService/ExecuteProposal": { ...proposal, isNew: false },
  "nft.NftService/Mint": { kind: "token", isNew: true, id: ["tokenId"], requestName: "name" },
  "blockchain.BlockchainService/RegisterNode": {
    ...{ kind: "validator", isNew: true, id: ["validatorAddress"], requestName: "name" },
  },
  "pqc.PqcService/IssueToken": logIn,
  "pqc.TokenService/IssueToken": logIn,
};

/** The facts about a record in a call. */
export interface FoundRecord {
  readonly kind: RecordKind;
  readonly isNew: boolean;
  readonly id: string;
  readonly name: string;
  readonly state: string;
}

/**
 * @param call the full name of a call: "kms.KmsService/CreateKey"
 * @param read returns request and answer as JSON; not called for a call that is not a source
 * @returns undefined if the call says nothing of a record
 */
export function findRecord(
  call: string,
  read: () => { readonly request: JsonObject; readonly answer: JsonObject },
): FoundRecord | undefined {
  if (!Object.hasOwn(sources, call)) return undefined;
  const source = sources[call];
  if (source === undefined) return undefined;
  const { request, answer } = read();
  const record = source.inField === undefined ? answer : toObject(answer[source.inField]);
  const id = readFirst(record, source.id);
  if (id === "") return undefined;
  const { kind, isNew } = source;
  const name =
    readFirst(record, source.name ?? []) ||
    readFirst(request, source.requestName ? [source.requestName] : []);
  return { kind, isNew, id, name, state: readFirst(record, source.state ? [source.state] : []) };
}

function readFirst(object: JsonObject, names: readonly string[]): string {
  const values = names.map((name) => object[name]);
  return values.find((value) => typeof value === "string" && value !== "")?.toString() ?? "";
}

function toObject(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
