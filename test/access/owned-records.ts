/** The kinds of records that users own: how to create, list and use each. */
import { type Kysely, sql } from "kysely";
import type { Schema } from "../../src/database/schema.ts";
import { present } from "../services/answers.ts";
import { makeSigner } from "../services/node-crypto.ts";
import { bytesOf } from "../support/bytes.ts";
import type { Clients } from "./access-server.ts";

const data = bytesOf("hello");
const vendorPublicKey = makeSigner("ml-dsa-87").publicKey;

export interface ListPage {
  readonly ids: string[];
  readonly nextPageToken: string;
  readonly totalSize: number;
}

export interface PageInput {
  readonly pageSize?: number;
  readonly pageToken?: string;
}

/** A kind of record. */
export interface OwnedKind {
  /**
   * Creates a record.
   *
   * @returns its ID
   */
  make(clients: Clients): Promise<string>;
  /** Reads a page of a caller's records. */
  list?(clients: Clients, page: PageInput): Promise<ListPage>;
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

export const kinds = {
  keys: {
    make: async ({ kms }) => present((await kms.createKey({})).result).keyId,
    list: async ({ kms }, input) => {
      const { keys, ...page } = await kms.listKeys(input);
      return { ...page, ids: keys.map(({ keyId }) => keyId) };
    },
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
    list: async ({ iot }, input) => {
      const { devices, ...page } = await iot.listDevices(input);
      return { ...page, ids: devices.map(({ deviceId }) => deviceId) };
    },
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
    list: async ({ vpn }, input) => {
      const { tunnels, ...page } = await vpn.listTunnels(input);
      return { ...page, ids: tunnels.map(({ tunnelId }) => tunnelId) };
    },
    uses: [({ vpn }, tunnelId) => vpn.handshake({ tunnelId })],
    missing: "TUNNEL_NOT_FOUND",
    stored: ["vpn_tunnels", "tunnel_id", "owner"],
  },
  contracts: {
    make: async ({ dapp }) => (await dapp.deployContract({ code: "contract" })).contractId,
    list: async ({ dapp }, input) => {
      const { contracts, ...page } = await dapp.listContracts(input);
      return { ...page, ids: contracts.map(({ contractId }) => contractId) };
    },
    uses: [],
    stored: ["dapp_contracts", "contract_id", "owner"],
  },
  wallets: {
    make: async ({ wallet }) => (await wallet.createWallet({})).walletId,
    list: async ({ wallet }, input) => {
      const { wallets, ...page } = await wallet.listWallets(input);
      return { ...page, ids: wallets.map(({ walletId }) => walletId) };
    },
    uses: [({ wallet }, walletId) => wallet.signTransaction({ walletId, data })],
    missing: "WALLET_NOT_FOUND",
    stored: ["wallets", "wallet_id", "owner"],
  },
  "multi-signature wallets": {
    make: makeMultisig,
    list: async ({ defi }, input) => {
      const { wallets, ...page } = await defi.listWallets(input);
      return { ...page, ids: wallets.map(({ walletId }) => walletId) };
    },
    uses: [({ defi }, walletId) => defi.createProposal({ walletId, data })],
    missing: "WALLET_NOT_FOUND",
    stored: ["defi_wallets", "wallet_id", "owner"],
  },
  proposals: {
    make: async (clients) => makeProposal(clients, await makeMultisig(clients)),
    list: async ({ defi }, input) => {
      const { proposals, ...page } = await defi.listProposals(input);
      return { ...page, ids: proposals.map(({ proposalId }) => proposalId) };
    },
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
    list: async ({ nft }, input) => {
      const { tokens, ...page } = await nft.listTokens(input);
      return { ...page, ids: tokens.map(({ tokenId }) => tokenId) };
    },
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
