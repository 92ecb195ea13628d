import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuse } from "../../src/errors.ts";
import { type GoogleDeps, readOwner, requireRing } from "./calls.ts";
import { ringFields } from "./filter-fields.ts";
import { prepareList, rowsBelow } from "./lists.ts";
import { keyRingTaken } from "./reasons.ts";
import { checkName, checkResourceId } from "./resource-names.ts";
import type { RingRecord } from "./tables.ts";

type Calls = Pick<ServiceImpl<typeof KeyManagementService>, "listKeyRings" | "getKeyRing" | "createKeyRing">;

/** Implements the key ring calls. */
export function keyRingCalls(deps: GoogleDeps): Calls {
  const { rings, store, now } = deps;
  return {
    async listKeyRings({ parent, ...request }, context) {
      const prefix = `${checkName("location", "parent", parent)}/keyRings/`;
      const read = prepareList(rings, request, readOwner(context), {
        ...rowsBelow("ring_name", prefix),
        fields: ringFields,
        pack: packRing,
        nameOf: ({ name }) => name,
      });
      const { records: keyRings, ...page } = await read();
      return { ...page, keyRings };
    },
    async getKeyRing({ name }, context) {
      const ring = checkName("key ring", "name", name);
      return packRing(await requireRing(deps, readOwner(context).owner, ring));
    },
    async createKeyRing({ parent, keyRingId }, context) {
      const id = checkResourceId("keyRingId", keyRingId);
      const name = `${checkName("location", "parent", parent)}/keyRings/${id}`;
      const { owner } = readOwner(context);
      const record: RingRecord = { owner, name, createdAt: now() };
      // A cheap early check that rejects most duplicates. The transaction makes the decision.
      if (await rings.findAnew(store.reader, owner, name)) throw ringTaken(name);
      await store.write(async (transaction) => {
        if (await rings.findAnew(transaction.db, owner, name)) throw ringTaken(name);
        await rings.insert(transaction, record);
      });
      return packRing(record);
    },
  };
}

function packRing({ name, createdAt }: RingRecord) {
  return { name, createTime: timestampFromDate(createdAt) };
}

function ringTaken(name: string): Error {
  return refuse(keyRingTaken, `key ring ${name} already exists`, { name });
}
