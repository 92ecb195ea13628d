import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuse } from "../../src/errors.ts";
import { type GoogleDeps, readListQuery, readOwner, requireRing } from "./calls.ts";
import { ringFields } from "./filter-fields.ts";
import { packDamaged } from "./pack.ts";
import { listPage } from "./pages.ts";
import { keyRingTaken } from "./reasons.ts";
import {
  checkResourceId,
  formatKeyRingName,
  formatLocationName,
  parseKeyRingName,
  parseLocationName,
} from "./resource-names.ts";
import type { RingRecord } from "./tables.ts";

type Calls = Pick<ServiceImpl<typeof KeyManagementService>, "listKeyRings" | "getKeyRing" | "createKeyRing">;

/** Implements the key ring calls. */
export function keyRingCalls(deps: GoogleDeps): Calls {
  const { rings, store, now } = deps;
  return {
    async listKeyRings({ parent, ...request }, context) {
      const prefix = `${formatLocationName(parseLocationName("parent", parent))}/keyRings/`;
      const named = { column: "ring_name", prefix, fields: ringFields };
      const { accepts, ...query } = readListQuery(request, named, readOwner(context));
      const { rows, ...page } = await listPage(rings, request, query, accepts);
      const keyRings = rows.map(({ record, isIntact }) =>
        isIntact ? packRing(record) : packDamaged(record.name),
      );
      return { ...page, keyRings };
    },
    async getKeyRing({ name }, context) {
      const ring = formatKeyRingName(parseKeyRingName("name", name));
      return packRing(await requireRing(deps, readOwner(context).owner, ring));
    },
    async createKeyRing({ parent, keyRingId }, context) {
      const keyRing = checkResourceId("keyRingId", keyRingId);
      const name = formatKeyRingName({ ...parseLocationName("parent", parent), keyRing });
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
