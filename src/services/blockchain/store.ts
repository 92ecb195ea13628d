/** What the chain service keeps: validators here, blocks and peers in stores of their own. */
import {
  bytes,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import { type Principal, systemPrincipal } from "../../records/ownership.ts";
import type { Page, PageRequest } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable, requireIntact, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { validatorAlgorithm } from "./block.ts";
import { type BlockStore, createBlockStore } from "./block-store.ts";
import { createPeerStore, type PeerStore } from "./peer-store.ts";

const columns = {
  address: text("address"),
  name: text("name"),
  /** Raw. */
  publicKey: bytes("public_key"),
  /** Who registered it. */
  owner: text("owner"),
  createdAt: time("created_at_ms"),
};

/** A validator without its secret key. */
export type Validator = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    blockchain_validators: RowOf<typeof columns> & PositionColumn & TagColumn;
  }
}

/** Names the list of validators, for page tokens and counts. */
export const validatorList = "blockchain_validators";

/** Counts the validators of an owner. */
export const validatorQuota = recordQuota(validatorList, "validators");

/** The approximate size of a validator in JSON: its key, raw and as PEM, and its name. */
const validatorBytes = 7000;

const validatorTable: TableDeclaration<typeof columns> = {
  name: validatorList,
  columns,
  key: ["address"],
  owner: "owner",
  quota: validatorQuota,
  describe: ({ address }) => `validator ${address}`,
  sizeOfListed: () => validatorBytes,
};

/** Names a validator's sealed secret key. */
export function nameSealedKey(validator: Validator): SealedKey {
  const { address, publicKey } = validator;
  const identity = `blockchain_validators/${address}/secret-key`;
  return { record: validatorTable.describe(validator), identity, algorithm: validatorAlgorithm, publicKey };
}

/** The chain of the service. A validator that was changed behind our back throws RecordDamagedError, but in lists. */
export interface ChainStore extends BlockStore, PeerStore {
  /** @param address the first validator of the principal if it is empty */
  findValidator(address: string, principal?: Principal): Promise<Validator | undefined>;
  insertValidator(transaction: WriteTransaction, validator: Validator, secret: Uint8Array): Promise<void>;
  listValidators(request: PageRequest): Promise<Page<Stored<Validator>>>;
  countValidators(): Promise<number>;
}

/** Makes the store of the service on the store of all. */
export function createChainStore(store: Store): ChainStore {
  const validators = openTable(store, validatorTable);
  return {
    ...createBlockStore(store),
    ...createPeerStore(store),
    async findValidator(address, principal = systemPrincipal) {
      const { owner } = principal;
      if (address !== "") return validators.findIntact({ address, ...(owner !== undefined && { owner }) });
      const { rows } = await validators.list({ after: 0, limit: 1 }, {}, principal);
      const [first] = rows;
      return first && requireIntact(first, validatorTable.describe(first.record));
    },
    async insertValidator(transaction, validator, secret) {
      await validators.insert(transaction, validator);
      await transaction.putSecret(nameSealedKey(validator).identity, secret);
    },
    listValidators: (request) => validators.list(request),
    countValidators: () => validators.count(),
  };
}
