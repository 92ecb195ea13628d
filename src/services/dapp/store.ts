/** What the contract service keeps: hashes of contracts with their signatures. */

import { readTime } from "../../database/row-values.ts";
import type { DappContractsTable } from "../../database/schema.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import { countedLists, listSeenBy, type Principal, systemPrincipal } from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Marked } from "../../records/tag.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

/** A contract; its signature vouches for its hash. */
export interface Contract {
  readonly contractId: string;
  readonly name: string;
  /** SHA-256 of the code; 64 lower-case hexadecimal digits. */
  readonly codeHash: string;
  /** Raw ML-DSA-65 over the 32 bytes of the hash. */
  readonly signature: Uint8Array;
  /** Raw ML-DSA-65. */
  readonly publicKey: Uint8Array;
  /** Who deployed it. */
  readonly owner: string;
  readonly deployedAt: Date;
}

/** Names the list of all contracts, for page tokens and counts. */
export const contractList = "dapp_contracts";

/** Counts the contracts of an owner. */
export const contractQuota = recordQuota(contractList, "contracts");

/** The contracts of the service. */
export interface DappStore {
  list(request: PageRequest, principal: Principal): Promise<Page<Marked<Contract>>>;
  count(principal?: Principal): Promise<number>;
  /** Keeps a contract, within a transaction. */
  insert(transaction: WriteTransaction, contract: Contract): Promise<void>;
}

/** Makes the store of the service on the store of all. */
export function createDappStore(store: Store): DappStore {
  return {
    async list(request, principal) {
      let query = store.reader.selectFrom("dapp_contracts").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, listSeenBy(principal, contractList), ({ position }) => position);
      const pack = (row: DappContractsTable): Marked<Contract> => {
        const contract = toContract(row);
        return { ...contract, isIntact: store.isTagged(listTaggedFields(contract), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    count: (principal = systemPrincipal) => readCount(store.reader, listSeenBy(principal, contractList)),
    async insert({ db, requireRoom }, contract) {
      await requireRoom(contractQuota, contract.owner);
      await db
        .insertInto("dapp_contracts")
        .values({
          position: await nextPosition(db, "dapp_contracts"),
          contract_id: contract.contractId,
          name: contract.name,
          code_hash: contract.codeHash,
          signature: contract.signature,
          public_key: contract.publicKey,
          owner: contract.owner,
          deployed_at_ms: contract.deployedAt.getTime(),
          record_tag: store.tagRecord(listTaggedFields(contract)),
        })
        .execute();
      await changeCounts(db, countedLists([contractList], contract), 1);
    },
  };
}

/** All that a contract's tag binds; in this order for the life of a store. */
function listTaggedFields(contract: Contract): (string | number | Uint8Array)[] {
  return [
    "dapp_contracts",
    contract.contractId,
    contract.name,
    contract.codeHash,
    contract.signature,
    contract.publicKey,
    contract.owner,
    contract.deployedAt.getTime(),
  ];
}

function toContract(row: DappContractsTable): Contract {
  return {
    contractId: row.contract_id,
    name: row.name,
    codeHash: row.code_hash,
    signature: row.signature,
    publicKey: row.public_key,
    owner: row.owner,
    deployedAt: readTime(row.deployed_at_ms),
  };
}
