/** kms.KmsService: unpack, call, pack. */

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { codeNameOf, reasonOf } from "../../errors.ts";
import { onceOf, viewerOf } from "../../identity/principal.ts";
import { isSeenBy, listSeenBy } from "../../records/ownership.ts";
import type { Store } from "../../store/store.ts";
import { partsOf, readPage } from "../fields.ts";
import { auditFeed, listAudit, packCheckpoint, packEntry, watchAudit } from "./audit.ts";
import type { ResponseForm } from "./batch-size.ts";
import { createKey } from "./create.ts";
import { decapsulate, encapsulate } from "./encapsulate.ts";
import { type KeyCache, refuseDamaged } from "./key-cache.ts";
import { packListed, packRecord, packWithJwk } from "./record-message.ts";
import { destroyKey, rotateKey } from "./rotate.ts";
import { type BatchItem, sign, signBatch, signStream } from "./sign.ts";
import { type KmsStore, keyListName } from "./store.ts";
import { verify } from "./verify.ts";
import { refuseUnknown } from "./with-key.ts";

/** What the service needs. */
export interface KmsServiceParts {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly keys: KmsStore;
  readonly cache: KeyCache;
  readonly now?: () => Date;
}

/** Makes the implementation. */
export function kmsService(given: KmsServiceParts): ServiceImpl<typeof KmsService> {
  const parts = { now: () => new Date(), ...given };
  const { provider, store, keys } = parts;
  const feed = auditFeed(store);
  const whoOf = (context: HandlerContext) => ({ viewer: viewerOf(context), signal: context.signal });
  return {
    createKey: async ({ alias, algorithm, usage }, context) => {
      const order = { alias, algorithm, usage, viewer: viewerOf(context), once: onceOf(context) };
      return { result: packRecord(await createKey(parts, order)) };
    },
    getKey: async ({ keyId }, context) => {
      const key = await keys.find(keyId);
      if (key === undefined || !isSeenBy(viewerOf(context), key.record)) throw refuseUnknown(keyId);
      if (!key.isIntact) throw refuseDamaged(keyId);
      return { result: packWithJwk(provider, key) };
    },
    listKeys: async ({ status: state, algorithm, ...fields }, context) => {
      const filter = { state, algorithm };
      const viewer = viewerOf(context);
      const page = readPage(fields, listSeenBy(viewer, keyListName(filter)));
      const { rows, nextPageToken } = await keys.list(page, filter, viewer);
      return { keys: rows.map(packListed), nextPageToken, totalSize: await keys.count(filter, viewer) };
    },
    rotateKey: async ({ keyId }, context) => {
      const order = { keyId, ...whoOf(context), once: onceOf(context) };
      return { newKey: packRecord(await rotateKey(parts, order)) };
    },
    destroyKey: async ({ keyId }, context) => {
      const order = { keyId, ...whoOf(context), once: onceOf(context) };
      return { keyId: await destroyKey(parts, order), newStatus: "DESTROYED" };
    },
    sign: async ({ keyId, data, context: binding, mu }, context) => ({
      result: await sign(parts, { keyId, data, context: binding, mu, ...whoOf(context) }),
    }),
    signStream: async (requests, context) => ({
      result: await signStream(parts, partsOf(requests), whoOf(context)),
    }),
    batchSign: async ({ keyId, data, context: binding }, context) => {
      const order = { keyId, data, context: binding, form: responseFormOf(context), ...whoOf(context) };
      const { items, ...about } = await signBatch(parts, order);
      return { results: items.map(packItem), ...about };
    },
    verify: async ({ keyId, data, signature, context: binding }, context) => ({
      result: await verify(parts, { keyId, data, signature, context: binding, ...whoOf(context) }),
    }),
    encapsulate: async ({ keyId }, context) => ({
      result: await encapsulate(parts, { keyId, ...whoOf(context) }),
    }),
    decapsulate: async ({ keyId, ciphertext }, context) => ({
      result: await decapsulate(parts, { keyId, ciphertext, ...whoOf(context) }),
    }),
    getAuditLog: async (query) => {
      const { rows, nextPageToken, totalSize } = await listAudit(store, query);
      return { auditLog: rows.map(packEntry), nextPageToken, totalSize };
    },
    async *watchAuditLog({ keyId, afterSequence }, { signal }) {
      for await (const entry of watchAudit({ store, feed }, keyId, afterSequence, signal))
        yield { entry: packEntry(entry) };
    },
    verifyAuditLog: async (_req, { signal }) => {
      const { checkpoint, firstBrokenSequence, ...found } = await store.verifyAudit({ signal });
      return {
        ...found,
        ...(firstBrokenSequence !== undefined && { firstBrokenSequence }),
        ...(checkpoint && { checkpoint: packCheckpoint(store, checkpoint) }),
      };
    },
    getHealth: async () => {
      const keyCount = await store.ifReachable(() => keys.count({ state: "", algorithm: "" }));
      return keyCount === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", keyCount };
    },
  };
}

/** Tells how the response of a call is written: REST has JSON alone, the other protocols answer as they are asked. */
function responseFormOf({ protocolName, requestHeader }: HandlerContext): ResponseForm {
  const isJson = protocolName === "rest" || /json/i.test(requestHeader.get("content-type") ?? "");
  return isJson ? "json" : "binary";
}

function packItem(item: BatchItem) {
  if ("signature" in item) return item;
  const { error } = item;
  return { error: { code: codeNameOf(error), reason: reasonOf(error) ?? "", message: error.rawMessage } };
}
