/** The kinds of records that users own: how to create, list and use each. */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { type Kysely, sql } from "kysely";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { present } from "../services/answers.ts";
import { makeSigner } from "../services/node-crypto.ts";
import { bytesOf } from "../support/bytes.ts";
import type { Clients } from "./access-server.ts";

const data = bytesOf("hello");
const vendorPublicKey = makeSigner("ml-dsa-87").publicKey;

export interface ListPage {
  /** Messages. */
  readonly rows: readonly object[];
  readonly ids: readonly string[];
  readonly nextPageToken: string;
  readonly totalSize: number;
}

export interface PageInput {
  readonly pageSize?: number;
  readonly pageToken?: string;
  /** Of keys only. */
  readonly status?: string;
}

/** Reads a page of a caller's records. */
export interface OwnedList {
  (clients: Clients, page: PageInput): Promise<ListPage>;
  readonly method: DescMethodUnary;
}

/** A kind of record. */
export interface OwnedKind {
  /**
   * Creates a record.
   *
   * @returns its ID
   */
  make(clients: Clients): Promise<string>;
  readonly list?: OwnedList;
  /** Calls that use a record. */
  readonly uses: readonly ((clients: Clients, id: string) => Promise<unknown>)[];
  /** The reason with which other users are rejected. */
  readonly missing?: string;
  /** The expected outcome of a use, if it is not an answer. */
  readonly outcome?: string;
  /** The table, and its ID and owner columns. */
  readonly stored: readonly [table: keyof Schema, id: string, owner: string];
  /** Whether a record with a tampered owner is hidden from its true owner, rather than only damaged. */
  readonly isHiddenIfGiven?: true;
}

/** A list; its rows are the only list in its message. */
export function lists(method: DescMethodUnary, id: string): OwnedList {
  const read = async ({ transport }: Clients, input: PageInput): Promise<ListPage> => {
    const init = input as MessageInitShape<DescMessage>;
    const { message } = await transport.unary(method, undefined, undefined, undefined, init);
    const rows: Record<string, string>[] = Object.values(message).find(Array.isArray) ?? [];
    return { ...(message as unknown as ListPage), rows, ids: rows.map((row) => row[id] ?? "") };
  };
  return Object.assign(read, { method });
}

export const kinds = {
  keys: {
    make: async ({ kms }) => present((await kms.createKey({})).result).keyId,
    list: lists(KmsService.method.listKeys, "keyId"),
    uses: [
      ({ kms }, keyId) => kms.getKey({ keyId }),
      ({ kms }, keyId) => kms.sign({ keyId, data }),
      ({ kms }, keyId) => kms.rotateKey({ keyId }),
    ],
    missing: "KEY_NOT_FOUND",
    stored: ["kms_keys", "key_id", "owner"],
    isHiddenIfGiven: true,
  },
  devices: {
    make: async ({ iot }) => (await iot.registerDevice({ simulated: true })).deviceId,
    list: lists(IotService.method.listDevices, "deviceId"),
    uses: [
      ({ iot }, deviceId) => iot.simulatedSign({ deviceId, data }),
      ({ iot }, deviceId) =>
        iot.sendTelemetry({ deviceId, telemetry: data, signature: new Uint8Array(2420) }),
      ({ iot }, deviceId) =>
        iot.updateFirmware({ deviceId, firmware: data, signature: new Uint8Array(4627), vendorPublicKey }),
    ],
    missing: "DEVICE_NOT_FOUND",
    stored: ["iot_devices", "device_id", "owner"],
  },
  tunnels: {
    make: async ({ vpn }) => (await vpn.registerPeer({})).tunnelId,
    list: lists(VpnService.method.listTunnels, "tunnelId"),
    uses: [({ vpn }, tunnelId) => vpn.handshake({ tunnelId })],
    missing: "TUNNEL_NOT_FOUND",
    stored: ["vpn_tunnels", "tunnel_id", "owner"],
  },
  contracts: {
    make: async ({ dapp }) => (await dapp.deployContract({ code: "contract" })).contractId,
    list: lists(DappService.method.listContracts, "contractId"),
    uses: [],
    stored: ["dapp_contracts", "contract_id", "owner"],
  },
  wallets: {
    make: async ({ wallet }) => (await wallet.createWallet({})).walletId,
    list: lists(WalletService.method.listWallets, "walletId"),
    uses: [({ wallet }, walletId) => wallet.signTransaction({ walletId, data })],
    missing: "WALLET_NOT_FOUND",
    stored: ["wallets", "wallet_id", "owner"],
  },
  "multi-signature wallets": {
    make: makeMultisig,
    list: lists(DefiService.method.listWallets, "walletId"),
    uses: [({ defi }, walletId) => defi.createProposal({ walletId, data })],
    missing: "WALLET_NOT_FOUND",
    stored: ["defi_wallets", "wallet_id", "owner"],
  },
  proposals: {
    make: async (clients) => makeProposal(clients, await makeMultisig(clients)),
    list: lists(DefiService.method.listProposals, "proposalId"),
    uses: [({ defi }, proposalId) => defi.executeProposal({ proposalId })],
    missing: "PROPOSAL_NOT_FOUND",
    outcome: "THRESHOLD_NOT_REACHED",
    stored: ["defi_proposals", "proposal_id", "owner"],
  },
  validators: {
    make: async ({ chain }) => (await chain.registerNode({})).validatorAddress,
    uses: [({ chain }, validatorAddress) => chain.addBlock({ data, validatorAddress })],
    missing: "VALIDATOR_NOT_FOUND",
    stored: ["blockchain_validators", "address", "owner"],
    isHiddenIfGiven: true,
  },
  tokens: {
    make: async ({ nft }) => (await nft.mint({ name: "art" })).tokenId,
    list: lists(NftService.method.listTokens, "tokenId"),
    uses: [
      ({ nft }, tokenId) => nft.getToken({ tokenId }),
      ({ nft }, tokenId) => nft.getHistory({ tokenId }),
      ({ nft }, tokenId) => nft.transfer({ tokenId, newOwner: `0x${"ab".repeat(20)}` }),
    ],
    missing: "TOKEN_NOT_FOUND",
    stored: ["nft_tokens", "token_id", "minter"],
    isHiddenIfGiven: true,
  },
} as const satisfies Record<string, OwnedKind>;

/** All kinds, with their names. */
export const allKinds: readonly (readonly [name: string, kind: OwnedKind])[] = Object.entries(kinds);

/** Overwrites the owner of a record. */
export async function giveRecord(
  db: Kysely<Schema>,
  { stored: [table, id, owner] }: OwnedKind,
  recordId: string,
  newOwner: string,
): Promise<void> {
  const change = sql`update ${sql.table(table)} set ${sql.ref(owner)} = ${newOwner}`;
  await sql`${change} where ${sql.ref(id)} = ${recordId}`.execute(db);
}

export async function makeMultisig({ defi }: Clients): Promise<string> {
  return (await defi.createMultisig({ signerCount: 1, threshold: 1 })).walletId;
}

export async function makeProposal({ defi }: Clients, walletId: string): Promise<string> {
  return present((await defi.createProposal({ walletId, data })).proposal).proposalId;
}
