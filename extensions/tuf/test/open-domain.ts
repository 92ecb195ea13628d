/** Repositories on a store without a server, with a fake clock and clients over the real codec. */
import { createHash } from "node:crypto";
import { createClient, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { type Caller, callerKey } from "../../../src/calls/call-values.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { UserStore } from "../../../src/identity/users.ts";
import { idempotencyInterceptor } from "../../../src/server/interceptors/idempotency.ts";
import { defiService } from "../../../src/services/defi/service.ts";
import { createDefiStore } from "../../../src/services/defi/store.ts";
import { createKeyDomain } from "../../../src/services/kms/domain.ts";
import { kmsService } from "../../../src/services/kms/service.ts";
import type { Store } from "../../../src/store/store.ts";
import type { TufDeps } from "../deps.ts";
import { findFile } from "../get-file.ts";
import { createSchedule } from "../schedule.ts";
import { repositoryService } from "../service.ts";
import { createTufStore } from "../store.ts";
import { addTarget } from "../targets.ts";
import { repository } from "./tuf-server.ts";

/** A clock that a test sets. */
export interface Clock {
  now: Date;
}

export type Domain = Awaited<ReturnType<typeof openDomain>>;

/** Metadata, as JSON. */
interface Signed {
  readonly signatures: readonly { readonly keyid: string }[];
  readonly signed: {
    readonly version: number;
    readonly meta: Readonly<Record<string, { readonly version: number }>>;
    readonly targets: Readonly<Record<string, { readonly hashes: { readonly sha256: string } }>>;
    readonly delegations?: {
      readonly roles: readonly { readonly name: string; readonly keyids: string[] }[];
    };
    readonly roles: Readonly<Record<string, { readonly keyids: string[]; readonly threshold: number }>>;
  };
}

/** @param users the accounts; undefined if anyone may call */
export async function openDomain(store: Store, clock: Clock, users?: UserStore) {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const now = (): Date => clock.now;
  const keyDomain = createKeyDomain({ store, provider, users, now });
  onTestFinished(() => keyDomain.close());
  const governance = createDefiStore(store);
  const removed: string[] = [];
  const deps: TufDeps = {
    ...keyDomain.open(),
    tuf: createTufStore(store),
    governance,
    contents: {
      remove: async (_, contentIds) => {
        removed.push(...contentIds);
      },
      erase: async () => {},
    } as Partial<TufDeps["contents"]> as TufDeps["contents"],
    requireReader: undefined,
  };
  /** Clients of a caller; without one, of the system. */
  const connect = (caller?: Caller & { readonly userId: string }) => {
    const identify: Interceptor = (next) => (req) => {
      req.contextValues.set(callerKey, caller);
      return next(req);
    };
    const transport = createRouterTransport(
      ({ service }) => {
        service(RepositoryService, repositoryService(deps));
        service(DefiService, defiService({ store, provider, governance, now }));
        service(
          KmsService,
          kmsService({
            ...deps,
            certificateFiles: [],
            verifyAudit: () => Promise.reject(new Error("is not tested here")),
          }),
        );
      },
      { router: { interceptors: [idempotencyInterceptor(), identify] } },
    );
    return {
      tuf: createClient(RepositoryService, transport),
      defi: createClient(DefiService, transport),
      kms: createClient(KmsService, transport),
    };
  };
  let renewals = 0;
  const schedule = createSchedule(deps, () => renewals++, new AbortController().signal);
  const find = (path: string) => findFile(deps, repository, path);
  let uploads = 0;
  return {
    deps,
    /** Removed contents. */
    removed: removed as readonly string[],
    ...connect(),
    connect,
    /** Adds a draft whose content is its text. */
    async upload(path: string, content: string): Promise<void> {
      const hash = (algorithm: string) => createHash(algorithm).update(content).digest();
      await store.write((transaction) =>
        addTarget(deps, transaction, repository, {
          path,
          contentId: `${path} ${++uploads} ${content}`,
          version: "",
          deviceTypes: [],
          length: content.length,
          sha256: hash("sha256"),
          sha512: hash("sha512"),
        }),
      );
    },
    /** Does the work of the schedule that is due. */
    renewDue: () => schedule.doDue(),
    /** Number of renewals that this schedule published. */
    renewals: () => renewals,
    /** Reads a published metadata file. */
    async read(path: string): Promise<Signed> {
      const file = await find(path);
      if (file === undefined) throw new Error(`${path} is not published`);
      const parts = await Array.fromAsync(file.read({ from: 0, to: file.length }));
      return JSON.parse(Buffer.concat(parts).toString()) as Signed;
    },
    /** Whether a file can be read. */
    has: async (path: string) => (await find(path)) !== undefined,
  };
}

/** The path of a target whose content is a text. */
export function targetPath(path: string, content: string, algorithm = "sha256"): string {
  const hash = createHash(algorithm).update(content).digest("hex");
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return `targets/${folder}${hash}.${path.slice(folder.length)}`;
}
