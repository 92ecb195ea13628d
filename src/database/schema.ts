/** Every table. Times are milliseconds since 1970, UTC; hashes and tags are lower-case hexadecimal. */

/** A secret that only the master key opens: see crypto/sealing.ts. */
export interface SealedSecretsTable {
  /** Names the record that it belongs to, such as "kms_keys/<key_id>/seed"; bound to the ciphertext. */
  identity: string;
  /** Which master key wrapped the data key. */
  master_key_id: string;
  wrapped_data_key: Uint8Array;
  ciphertext: Uint8Array;
}

/** What happened to a key. The rows form a hash chain: see audit-chain.ts. */
export interface AuditEntriesTable {
  /** Counts from 1 without gaps. */
  sequence: number;
  key_id: string;
  operation: string;
  user_name: string;
  occurred_at_ms: number;
  outcome: string;
  details: string;
  entry_hash: string;
  /** Binds entry_hash to a key that the database does not hold in the clear. */
  entry_tag: string;
}

/** Where the chain ends. One row. */
export interface AuditHeadTable {
  id: number;
  sequence: number;
  entry_hash: string;
  head_tag: string;
}

/** Signed statements of where the chain was. */
export interface AuditCheckpointsTable {
  sequence: number;
  entry_hash: string;
  signed_at_ms: number;
  signature: Uint8Array;
}

/** Answers that were given to calls with an idempotency key. */
export interface IdempotentAnswersTable {
  /** The ID of the user who called; the column is older than IDs. */
  user_name: string;
  idempotency_key: string;
  request_hash: string;
  /** Sealed: an answer may hold what is told only once. */
  sealed_answer: Uint8Array;
  answered_at_ms: number;
}

/** A key that signs, or has signed, tokens. */
export interface IssuerKeysTable {
  /** The RFC 7638 thumbprint of the public key. */
  key_id: string;
  algorithm: string;
  public_key: Uint8Array;
  created_at_ms: number;
  /** When it stopped signing; null for the one that signs. */
  retired_at_ms: number | null;
  record_tag: string;
}

/** Somebody who may log in. */
export interface UsersTable {
  name: string;
  /** Owns what the user makes; never given to another user. */
  user_id: string;
  role: string;
  /** Of scrypt, with its parameters: see services/pqc/passwords.ts. */
  password_hash: string;
  /** Changes with the password; tokens of another generation are not accepted. */
  generation: string;
  created_at_ms: number;
  record_tag: string;
}

/** A key of the key service. */
export interface KmsKeysTable {
  /** Counts from 1 in the order of creation. */
  position: number;
  key_id: string;
  alias: string;
  algorithm: string;
  key_usage: string;
  key_state: string;
  public_key: Uint8Array;
  owner: string;
  created_at_ms: number;
  /** Binds all other columns to each other. */
  record_tag: string;
}

/** How many rows a list has; see list-counts.ts. */
export interface ListCountsTable {
  /** The list with its filters. */
  list_name: string;
  row_count: number;
}

/** A wallet. */
export interface WalletsTable {
  position: number;
  wallet_id: string;
  label: string;
  address: string;
  public_key: Uint8Array;
  owner: string;
  created_at_ms: number;
  record_tag: string;
}

/** A token, and who has it now. */
export interface NftTokensTable {
  position: number;
  token_id: string;
  name: string;
  description: string;
  artwork_uri: string;
  metadata_hash: string;
  creator_address: string;
  creator_public_key: Uint8Array;
  creator_signature: Uint8Array;
  current_owner: string;
  /** How many rows nft_transfers has of it. */
  transfer_count: number;
  /** The user who minted it; empty for one that was minted before tokens had one. */
  minter: string;
  minted_at_ms: number;
  record_tag: string;
}

/** One change of a token's owner. */
export interface NftTransfersTable {
  token_id: string;
  /** Counts the token's transfers from 1. */
  transfer_index: number;
  from_address: string;
  to_address: string;
  transferred_at_ms: number;
  record_tag: string;
}

/** A contract whose hash was signed. */
export interface DappContractsTable {
  position: number;
  contract_id: string;
  name: string;
  code_hash: string;
  signature: Uint8Array;
  public_key: Uint8Array;
  owner: string;
  deployed_at_ms: number;
  record_tag: string;
}

/** A wallet that several signers govern. */
export interface DefiWalletsTable {
  position: number;
  wallet_id: string;
  threshold: number;
  /** JSON: the addresses of the signers. */
  signers: string;
  owner: string;
  created_at_ms: number;
  record_tag: string;
}

/** A signer of a wallet. */
export interface DefiSignersTable {
  wallet_id: string;
  address: string;
  public_key: Uint8Array;
  /** 1 if the service keeps the secret key sealed, 0 if the signer keeps it. */
  is_kept: number;
  record_tag: string;
}

/** A proposal to a wallet's signers. */
export interface DefiProposalsTable {
  position: number;
  proposal_id: string;
  wallet_id: string;
  data: Uint8Array;
  title: string;
  threshold: number;
  proposal_status: string;
  /** JSON: the addresses of those who signed, in their order. */
  signed_by: string;
  owner: string;
  created_at_ms: number;
  expires_at_ms: number | null;
  executed_at_ms: number | null;
  record_tag: string;
}

/** A signer's signature of a proposal. */
export interface DefiSignaturesTable {
  proposal_id: string;
  signer: string;
  signature: Uint8Array;
}

/** A validator of the chain. */
export interface BlockchainValidatorsTable {
  position: number;
  address: string;
  name: string;
  public_key: Uint8Array;
  owner: string;
  created_at_ms: number;
  record_tag: string;
}

/** A block. */
export interface BlockchainBlocksTable {
  /** Counts from 0. */
  block_index: number;
  prev_hash: string;
  data: Uint8Array;
  timestamp_ms: number;
  block_hash: string;
  signature: Uint8Array;
  validator_address: string;
}

/** Where the chain ends. One row. */
export interface BlockchainHeadTable {
  id: number;
  chain_length: number;
  head_hash: string;
  record_tag: string;
}

/** Another server of the chain. */
export interface BlockchainPeersTable {
  position: number;
  address: string;
  /** 1 if it answered when it was last called. */
  is_connected: number;
  height: number | null;
  last_seen_at_ms: number | null;
}

/** A device, and what it last did. */
export interface IotDevicesTable {
  position: number;
  device_id: string;
  device_name: string;
  device_type: string;
  public_key: Uint8Array;
  /** 1 if the service keeps the secret key sealed. */
  is_simulated: number;
  /** Empty if no vendor is pinned. */
  vendor_public_key: Uint8Array;
  /** 1 if the device signs with a context for each use. */
  signing_contexts: number;
  owner: string;
  registered_at_ms: number;
  record_tag: string;
  last_seen_at_ms: number | null;
  last_sequence: number | null;
  /** "NUMBERED" or "PLAIN"; null before the first verified reading. */
  reading_form: string | null;
  firmware_version: number | null;
  firmware_hash: string | null;
  /** Hashes of images that the device had before, the latest first, with spaces between them. */
  former_images: string;
  /** Binds the readings and the firmware to the device. */
  state_tag: string;
}

/** A challenge that a device was given. */
export interface IotChallengesTable {
  /** SHA-256 of it: who reads the database can not answer for the device. */
  challenge_hash: string;
  device_id: string;
  /** The client network that asked for it. */
  issued_to: string;
  expires_at_ms: number;
  used_at_ms: number | null;
}

/** A tunnel of the private network. */
export interface VpnTunnelsTable {
  position: number;
  tunnel_id: string;
  peer_name: string;
  /** The last 16 bits of its address, 10.8.0.0 being 0. */
  address_number: number;
  public_key: Uint8Array;
  /** 1 if the gateway made the peer's pair and keeps its secret key sealed. */
  is_kept: number;
  owner: string;
  created_at_ms: number;
  record_tag: string;
}

/** A ciphertext with which a peer opened a session. */
export interface VpnUsedCiphertextsTable {
  tunnel_id: string;
  /** SHARED or PER_DIRECTION. */
  key_form: string;
  /** SHA-256 of it, in hexadecimal. */
  ciphertext_hash: string;
}

/** All tables by name. */
export interface Schema {
  sealed_secrets: SealedSecretsTable;
  audit_entries: AuditEntriesTable;
  audit_head: AuditHeadTable;
  audit_checkpoints: AuditCheckpointsTable;
  idempotent_answers: IdempotentAnswersTable;
  issuer_keys: IssuerKeysTable;
  users: UsersTable;
  kms_keys: KmsKeysTable;
  list_counts: ListCountsTable;
  wallets: WalletsTable;
  nft_tokens: NftTokensTable;
  nft_transfers: NftTransfersTable;
  dapp_contracts: DappContractsTable;
  defi_wallets: DefiWalletsTable;
  defi_signers: DefiSignersTable;
  defi_proposals: DefiProposalsTable;
  defi_signatures: DefiSignaturesTable;
  blockchain_validators: BlockchainValidatorsTable;
  blockchain_blocks: BlockchainBlocksTable;
  blockchain_head: BlockchainHeadTable;
  blockchain_peers: BlockchainPeersTable;
  iot_devices: IotDevicesTable;
  iot_challenges: IotChallengesTable;
  vpn_tunnels: VpnTunnelsTable;
  vpn_used_ciphertexts: VpnUsedCiphertextsTable;
}

/** The tables, each after those that it builds on, with the columns that order its rows. */
export const tables = {
  sealed_secrets: ["identity"],
  audit_entries: ["sequence"],
  audit_head: ["id"],
  audit_checkpoints: ["sequence"],
  idempotent_answers: ["user_name", "idempotency_key"],
  issuer_keys: ["key_id"],
  users: ["name"],
  kms_keys: ["position"],
  list_counts: ["list_name"],
  wallets: ["position"],
  nft_tokens: ["position"],
  nft_transfers: ["token_id", "transfer_index"],
  dapp_contracts: ["position"],
  defi_wallets: ["position"],
  defi_signers: ["wallet_id", "address"],
  defi_proposals: ["position"],
  defi_signatures: ["proposal_id", "signer"],
  blockchain_validators: ["position"],
  blockchain_blocks: ["block_index"],
  blockchain_head: ["id"],
  blockchain_peers: ["position"],
  iot_devices: ["position"],
  iot_challenges: ["challenge_hash"],
  vpn_tunnels: ["position"],
  vpn_used_ciphertexts: ["ciphertext_hash"],
} as const satisfies { readonly [Table in keyof Schema]: readonly (keyof Schema[Table])[] };
