/** kms.KmsService: unpack, call, pack. */

import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import { type WrappingMethod, wrappingMethods } from "../../crypto/hpke.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { isAuditor, readIdempotentCall, readPrincipal } from "../../identity/principal.ts";
import type { UserStore } from "../../identity/users.ts";
import type { Store } from "../../store/store.ts";
import { partsOf } from "../fields.ts";
import { auditFeed, listAudit, packEntry, toFilter, watchAudit } from "./audit.ts";
import type { ResponseForm } from "./batch-size.ts";
import { createKey } from "./create.ts";
import { createCsr } from "./create-csr.ts";
import { decapsulate, encapsulate } from "./encapsulate.ts";
import { exportPublicKeys } from "./export.ts";
import { getKey } from "./get-key.ts";
import { createGrant, revokeGrant } from "./grants.ts";
import { beginImport, importKey } from "./import.ts";
import type { KeyCache } from "./key-cache.ts";
import { destroyKey, disableKey, enableKey, restoreKey } from "./life-cycle.ts";
import { listGrants } from "./list-grants.ts";
import { listKeys } from "./list-keys.ts";
import { rotateKey } from "./rotate.ts";
import { sign, signBatch, signStream } from "./sign.ts";
import type { KmsStore } from "./store.ts";
import { createTurns } from "./turns.ts";
import { verify } from "./verify.ts";
import { createAuditVerifications, packVerification, watchVerification } from "./verify-audit.ts";

/** The dependencies of the service. */
export interface KmsServiceDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly keys: KmsStore;
  readonly cache: KeyCache;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly now?: () => Date;
}

/** Implements the service. It is long because it has one entry for each RPC, and nothing else. */
export function kmsService(given: KmsServiceDeps): ServiceImpl<typeof KmsService> {
  const deps = { now: () => new Date(), ...given };
  const { store, keys } = deps;
  const feed = auditFeed(store);
  const whoOf = (context: HandlerContext) => ({ principal: readPrincipal(context), signal: context.signal });
  const changeOf = (context: HandlerContext) => ({
    ...whoOf(context),
    idempotentCall: readIdempotentCall(context),
  });
  const takeTurn = createTurns();
  const verifications = createAuditVerifications(deps);
  const readerOf = (context: HandlerContext) => ({
    principal: readPrincipal(context),
    isAuditor: isAuditor(context),
  });
  return {
    createKey: async ({ $typeName: _, ...key }, context) => ({
      result: await createKey(deps, {
        ...key,
        ...changeOf(context),
        rotationPeriodSeconds: key.rotationPeriodSeconds,
      }),
    }),
    getKey: ({ keyId }, context) => getKey(deps, { handle: keyId, ...whoOf(context) }),
    listKeys: ({ status: state, algorithm, usage, name, label, ...fields }, context) =>
      listKeys(deps, fields, { state, algorithm, usage, name, label }, readPrincipal(context)),
    rotateKey: async ({ keyId }, context) => ({
      newKey: await rotateKey(deps, { handle: keyId, ...changeOf(context) }),
    }),
    disableKey: async ({ keyId }, context) => ({
      result: await disableKey(deps, { handle: keyId, ...changeOf(context) }),
    }),
    enableKey: async ({ keyId }, context) => ({
      result: await enableKey(deps, { handle: keyId, ...changeOf(context) }),
    }),
    restoreKey: async ({ keyId }, context) => ({
      result: await restoreKey(deps, { handle: keyId, ...changeOf(context) }),
    }),
    destroyKey: async ({ keyId, afterSeconds }, context) => {
      const { destroyAtMs, ...destroyed } = await destroyKey(deps, {
        handle: keyId,
        afterSeconds,
        ...changeOf(context),
      });
      return destroyAtMs === undefined
        ? destroyed
        : { ...destroyed, destroyAt: timestampFromMs(destroyAtMs) };
    },
    getImportParameters: async ({ algorithm }, context) => {
      const method = (algorithm || wrappingMethods[0]) as WrappingMethod;
      const begun = await beginImport(deps, { method, ...changeOf(context) });
      const { publicKey, importId, expiresAt } = begun;
      return {
        publicKey,
        importToken: importId,
        expiresAt: timestampFromDate(expiresAt),
        algorithm: method,
      };
    },
    importKey: async ({ $typeName: _, ...key }, context) => ({
      result: await importKey(deps, {
        ...key,
        ...changeOf(context),
        rotationPeriodSeconds: key.rotationPeriodSeconds,
      }),
    }),
    exportPublicKeys: (query, context) => exportPublicKeys(deps, query, readPrincipal(context)),
    createGrant: async ({ keyId, $typeName: _, ...grant }, context) => ({
      grant: await createGrant(deps, {
        ...grant,
        handle: keyId,
        expiresAt: grant.expiresAt,
        ...changeOf(context),
      }),
    }),
    listGrants: (query, context) => listGrants(deps, query, readPrincipal(context)),
    revokeGrant: async ({ grantId }, context) => ({
      grant: await revokeGrant(deps, { grantId, ...changeOf(context) }),
    }),
    sign: async ({ keyId, data, context: binding, mu }, context) => ({
      result: await sign(deps, { handle: keyId, data, context: binding, mu, ...whoOf(context) }),
    }),
    signStream: async (requests, context) => ({
      result: await signStream(deps, partsOf(requests), whoOf(context)),
    }),
    batchSign: async ({ keyId, data, context: binding }, context) => {
      const input = { handle: keyId, data, context: binding, ...whoOf(context) };
      const { signatures, ...about } = await signBatch(deps, { ...input, form: readResponseForm(context) });
      return { results: signatures.map((signature) => ({ signature })), ...about };
    },
    createCsr: async ({ keyId, $typeName: _, ...request }, context) => ({
      result: await createCsr(deps, { ...request, handle: keyId, ...whoOf(context) }),
    }),
    verify: async ({ keyId, data, signature, context: binding }, context) => ({
      result: await verify(deps, { handle: keyId, data, signature, context: binding, ...whoOf(context) }),
    }),
    encapsulate: async ({ keyId }, context) => ({
      result: await encapsulate(deps, { handle: keyId, ...whoOf(context) }),
    }),
    decapsulate: async ({ keyId, ciphertext }, context) => ({
      result: await decapsulate(deps, { handle: keyId, ciphertext, ...whoOf(context) }),
    }),
    getAuditLog: async (query, context) => {
      const reader = readerOf(context);
      const filter = await toFilter(deps, query, reader);
      // A list may read all of the caller's entries. One at a time, so that other callers' reads are not starved.
      const { rows, nextPageToken, totalSize } = await takeTurn(reader.principal.userId, context.signal, () =>
        listAudit(store, filter, query),
      );
      return { auditLog: rows.map(packEntry), nextPageToken, totalSize };
    },
    async *watchAuditLog(query, context) {
      const filter = await toFilter(deps, query, readerOf(context));
      for await (const entry of watchAudit({ store, feed }, filter, query.afterSequence, context.signal))
        yield { entry: packEntry(entry) };
    },
    verifyAuditLog: async ({ full }, { signal }) =>
      packVerification(store, await (full ? verifications.whole : verifications.continued).wait({ signal })),
    watchAuditVerification: (_req, { signal }) => watchVerification(verifications, store, signal),
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
