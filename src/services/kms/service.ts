/** kms.KmsService: unpack, call, pack. */

import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import { keyLog } from "../../audit/tables.ts";
import { createCallerMutex } from "../../calls/caller-mutex.ts";
import { type WrappingMethod, wrappingMethods } from "../../crypto/hpke.ts";
import { isAuditor, readCaller, readPrincipal } from "../../identity/principal.ts";
import { openEntryLog } from "../entry-log.ts";
import { partsOf, readHealth } from "../fields.ts";
import { packEntry, toFilter } from "./audit.ts";
import type { ResponseForm } from "./batch-size.ts";
import { type CbomDeps, writeCbom } from "./cbom.ts";
import type { ChangeDeps } from "./change.ts";
import { createKey } from "./create.ts";
import { createCsr } from "./create-csr.ts";
import { decapsulate, encapsulate } from "./encapsulate.ts";
import { decrypt, encrypt, reEncrypt } from "./encrypt.ts";
import { exportPublicKeys } from "./export.ts";
import { getKey } from "./get-key.ts";
import { createGrant, revokeGrant } from "./grants.ts";
import { beginImport, importKey } from "./import.ts";
import { destroyKey, disableKey, enableKey, restoreKey } from "./life-cycle.ts";
import { listGrants } from "./list-grants.ts";
import { listKeys } from "./list-keys.ts";
import { rotateKey } from "./rotate.ts";
import { sign, signBatch, signStream } from "./sign.ts";
import { verify } from "./verify.ts";
import {
  type AuditVerificationDeps,
  createAuditVerifications,
  packVerification,
  watchVerification,
} from "./verify-audit.ts";

/** This function is long because it has one entry per RPC, and nothing else. */
export function kmsService(
  deps: ChangeDeps & CbomDeps & AuditVerificationDeps,
): ServiceImpl<typeof KmsService> {
  const { store, keys } = deps;
  const auditLog = openEntryLog(store, keyLog);
  const runExclusively = createCallerMutex();
  const verifications = createAuditVerifications(deps);
  const readerOf = (context: HandlerContext) => ({
    principal: readPrincipal(context),
    isAuditor: isAuditor(context),
  });
  const inputOf = (keyId: string, context: HandlerContext) => ({ handle: keyId, ...readCaller(context) });
  return {
    createKey: async (req, context) => ({ result: await createKey(deps, req, readCaller(context)) }),
    getKey: ({ keyId }, context) => getKey(deps, inputOf(keyId, context)),
    listKeys: (req, context) => listKeys(deps, req, readPrincipal(context)),
    rotateKey: async ({ keyId }, context) => ({ newKey: await rotateKey(deps, inputOf(keyId, context)) }),
    disableKey: async ({ keyId }, context) => ({ result: await disableKey(deps, inputOf(keyId, context)) }),
    enableKey: async ({ keyId }, context) => ({ result: await enableKey(deps, inputOf(keyId, context)) }),
    restoreKey: async ({ keyId }, context) => ({ result: await restoreKey(deps, inputOf(keyId, context)) }),
    destroyKey: async ({ keyId, afterSeconds }, context) => {
      const input = { ...inputOf(keyId, context), afterSeconds };
      const { destroyAtMs, ...destroyed } = await destroyKey(deps, input);
      return destroyAtMs === undefined
        ? destroyed
        : { ...destroyed, destroyAt: timestampFromMs(destroyAtMs) };
    },
    getImportParameters: async ({ algorithm }, context) => {
      const method = (algorithm || wrappingMethods[0]) as WrappingMethod;
      const begun = await beginImport(deps, { method, ...readCaller(context) });
      const { publicKey, importId, expiresAt } = begun;
      return {
        publicKey,
        importToken: importId,
        expiresAt: timestampFromDate(expiresAt),
        algorithm: method,
      };
    },
    importKey: async (req, context) => ({ result: await importKey(deps, req, readCaller(context)) }),
    exportPublicKeys: (req, context) => exportPublicKeys(deps, req, readPrincipal(context)),
    async *getCbom(_req, context) {
      const principal = readPrincipal(context);
      // Unlike other lists, it is a stream.
      const list: CbomDeps["keys"]["list"] = (...query) =>
        runExclusively(principal.userId, context.signal, () => keys.list(...query));
      for await (const part of writeCbom({ ...deps, keys: { list } }, principal)) yield { cbom: part };
    },
    createGrant: async (req, context) => ({ grant: await createGrant(deps, req, readCaller(context)) }),
    listGrants: (req, context) => listGrants(deps, req, readPrincipal(context)),
    revokeGrant: async ({ grantId }, context) => ({
      grant: await revokeGrant(deps, grantId, readCaller(context)),
    }),
    sign: async ({ keyId, data, context: binding, mu }, context) => ({
      result: await sign(deps, { ...inputOf(keyId, context), data, context: binding, mu }),
    }),
    signStream: async (requests, context) => ({
      result: await signStream(deps, partsOf(requests), readCaller(context)),
    }),
    batchSign: (req, context) => signBatch(deps, req, readCaller(context), readResponseForm(context)),
    createCsr: async (req, context) => ({ result: await createCsr(deps, req, readCaller(context)) }),
    verify: async (req, context) => ({ result: await verify(deps, req, readCaller(context)) }),
    encapsulate: async ({ keyId }, context) => ({ result: await encapsulate(deps, inputOf(keyId, context)) }),
    decapsulate: async ({ keyId, ciphertext }, context) => ({
      result: await decapsulate(deps, { ...inputOf(keyId, context), ciphertext }),
    }),
    encrypt: async ({ keyId, plaintext, associatedData }, context) => ({
      result: await encrypt(deps, { ...inputOf(keyId, context), data: plaintext, associatedData }),
    }),
    decrypt: async ({ keyId, ciphertext, associatedData }, context) => ({
      result: await decrypt(deps, { ...inputOf(keyId, context), data: ciphertext, associatedData }),
    }),
    reEncrypt: async ({ keyId, ciphertext, associatedData }, context) => ({
      result: await reEncrypt(deps, { ...inputOf(keyId, context), data: ciphertext, associatedData }),
    }),
    getAuditLog: async (query, context) => {
      const reader = readerOf(context);
      const filter = await toFilter(deps, query, reader);
      const { rows, ...page } = await auditLog.list(filter, query);
      return { ...page, auditLog: rows.map(packEntry) };
    },
    async *watchAuditLog(query, context) {
      const filter = await toFilter(deps, query, readerOf(context));
      const watched = { filter, after: query.afterSequence, signal: context.signal };
      for await (const entry of auditLog.watch(watched)) yield { entry: packEntry(entry) };
    },
    verifyAuditLog: async ({ full }, { signal }) =>
      packVerification(store, await (full ? verifications.whole : verifications.continued).wait({ signal })),
    watchAuditVerification: (_req, { signal }) => watchVerification(verifications, store, signal),
    getHealth: () => readHealth(store, async () => ({ keyCount: await keys.count() })),
  };
}

/** Returns the response encoding: REST always uses JSON; the other protocols use the request's encoding. */
function readResponseForm({ protocolName, requestHeader }: HandlerContext): ResponseForm {
  const isJson = protocolName === "rest" || /json/i.test(requestHeader.get("content-type") ?? "");
  return isJson ? "json" : "binary";
}
