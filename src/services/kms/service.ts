/** kms.KmsService: unpack, call, pack. */

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { findReason } from "../../errors.ts";
import { readIdempotentCall, readPrincipal } from "../../identity/principal.ts";
import { nameCode } from "../../protocol/code-name.ts";
import { isSeenBy, listSeenBy } from "../../records/ownership.ts";
import type { Store } from "../../store/store.ts";
import { partsOf, readPage } from "../fields.ts";
import { auditFeed, listAudit, packCheckpoint, packEntry, watchAudit } from "./audit.ts";
import type { ResponseForm } from "./batch-size.ts";
import { createKey } from "./create.ts";
import { decapsulate, encapsulate } from "./encapsulate.ts";
import { type KeyCache, keyDamaged } from "./key-cache.ts";
import { packListed, packRecord, packWithJwk } from "./record-message.ts";
import { destroyKey, rotateKey } from "./rotate.ts";
import { type BatchItem, sign, signBatch, signStream } from "./sign.ts";
import { type KmsStore, keyListName } from "./store.ts";
import { verify } from "./verify.ts";
import { keyNotFound } from "./with-key.ts";

/** What the service needs. */
export interface KmsServiceDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly keys: KmsStore;
  readonly cache: KeyCache;
  readonly now?: () => Date;
}

/** Implements the service. */
export function kmsService(given: KmsServiceDeps): ServiceImpl<typeof KmsService> {
  const deps = { now: () => new Date(), ...given };
  const { provider, store, keys } = deps;
  const feed = auditFeed(store);
  const whoOf = (context: HandlerContext) => ({ principal: readPrincipal(context), signal: context.signal });
  return {
    createKey: async ({ alias, algorithm, usage }, context) => {
      const input = {
        alias,
        algorithm,
        usage,
        principal: readPrincipal(context),
        idempotentCall: readIdempotentCall(context),
      };
      return { result: packRecord(await createKey(deps, input)) };
    },
    getKey: async ({ keyId }, context) => {
      const key = await keys.find(keyId);
      if (key === undefined || !isSeenBy(readPrincipal(context), key.record)) throw keyNotFound(keyId);
      if (!key.isIntact) throw keyDamaged(keyId);
      return { result: packWithJwk(provider, key) };
    },
    listKeys: async ({ status: state, algorithm, ...fields }, context) => {
      const filter = { state, algorithm };
      const principal = readPrincipal(context);
      const page = readPage(fields, listSeenBy(principal, keyListName(filter)));
      const { rows, nextPageToken } = await keys.list(page, principal, filter);
      return { keys: rows.map(packListed), nextPageToken, totalSize: await keys.count(principal, filter) };
    },
    rotateKey: async ({ keyId }, context) => {
      const input = { keyId, ...whoOf(context), idempotentCall: readIdempotentCall(context) };
      return { newKey: packRecord(await rotateKey(deps, input)) };
    },
    destroyKey: async ({ keyId }, context) => {
      const input = { keyId, ...whoOf(context), idempotentCall: readIdempotentCall(context) };
      return { keyId: await destroyKey(deps, input), newStatus: "DESTROYED" };
    },
    sign: async ({ keyId, data, context: binding, mu }, context) => ({
      result: await sign(deps, { keyId, data, context: binding, mu, ...whoOf(context) }),
    }),
    signStream: async (requests, context) => ({
      result: await signStream(deps, partsOf(requests), whoOf(context)),
    }),
    batchSign: async ({ keyId, data, context: binding }, context) => {
      const input = { keyId, data, context: binding, form: readResponseForm(context), ...whoOf(context) };
      const { items, ...about } = await signBatch(deps, input);
      return { results: items.map(packItem), ...about };
    },
    verify: async ({ keyId, data, signature, context: binding }, context) => ({
      result: await verify(deps, { keyId, data, signature, context: binding, ...whoOf(context) }),
    }),
    encapsulate: async ({ keyId }, context) => ({
      result: await encapsulate(deps, { keyId, ...whoOf(context) }),
    }),
    decapsulate: async ({ keyId, ciphertext }, context) => ({
      result: await decapsulate(deps, { keyId, ciphertext, ...whoOf(context) }),
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
      const keyCount = await store.ifReachable(() => keys.count());
      return keyCount === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", keyCount };
    },
  };
}

/** Tells how a response is encoded: REST always uses JSON; the other protocols use the encoding of the request. */
function readResponseForm({ protocolName, requestHeader }: HandlerContext): ResponseForm {
  const isJson = protocolName === "rest" || /json/i.test(requestHeader.get("content-type") ?? "");
  return isJson ? "json" : "binary";
}

function packItem(item: BatchItem) {
  if ("signature" in item) return item;
  const { error } = item;
  return {
    error: { code: nameCode(error.code), reason: findReason(error) ?? "", message: error.rawMessage },
  };
}
