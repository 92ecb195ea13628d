/** OAuth 2 clients (RFC 6749, section 2): programs that obtain access tokens with their own secret. */
import { randomUUID } from "node:crypto";
import type { RecordOf } from "../records/columns.ts";
import { openTable } from "../records/record-table.ts";
import { intact } from "../records/table-declaration.ts";
import type { Store } from "../store/store.ts";
import { byOperator } from "./identity-entry.ts";
import { clientTable, describeGeneration, userTable } from "./tables.ts";

/** These changes revoke tokens and must be possible on a full disk. */
const safety = { priority: "safety" } as const;

/** A client with the hash of its secret. */
export type StoredClient = RecordOf<typeof clientTable.columns>;

export type NewClient = Omit<StoredClient, "generation" | "createdAt" | "userId">;

/** A client's role and rights. */
export type ClientRights = Pick<StoredClient, "role" | "scopes" | "audiences" | "resources" | "mayExchange">;

export type ClientStore = ReturnType<typeof createClientStore>;

/** Creates the client store on top of the shared store. */
export function createClientStore(store: Store) {
  const clients = openTable(store, clientTable);
  const users = openTable(store, userTable);
  return {
    /** @throws RecordDamagedError */
    find: (name: string) => clients.findIntact({ name }),
    /**
     * Lists all clients by name.
     *
     * @throws RecordDamagedError
     */
    async list(): Promise<StoredClient[]> {
      const rows = await clients.select(store.reader).orderBy("name").execute();
      return rows.map((row) => clients.requireIntact(clients.readRow(row)));
    },
    /** @returns false if a client or user already has that name: the audit log identifies callers by name */
    add: (client: NewClient, createdAt: Date) =>
      store.write(async (transaction) => {
        const { name } = client;
        if (await users.find({ name }, transaction)) return false;
        if (await clients.find({ name }, transaction)) return false;
        const userId = `client:${randomUUID()}`;
        const generation = randomUUID();
        await clients.insert(transaction, { ...client, userId, generation, createdAt });
        const details = `${describeRights(client)}, ${describeGeneration(generation)}`;
        await transaction.auditIdentity(byOperator("CREATE_CLIENT", name, details));
        return true;
      }),
    /**
     * Sets a secret, which revokes all of the client's tokens.
     *
     * @returns false if no client has that name
     */
    setSecret: (name: string, secretHash: string) =>
      store.write(async (transaction) => {
        const client = await clients.findIntact({ name }, transaction);
        if (client === undefined) return false;
        const generation = randomUUID();
        await clients.update(transaction, intact(client), { secretHash, generation });
        const details = describeGeneration(generation);
        await transaction.auditIdentity(byOperator("SET_CLIENT_SECRET", name, details));
        return true;
      }, safety),
    /**
     * Removes a client, which revokes all its tokens.
     *
     * @returns false if no client has that name
     */
    remove: (name: string) =>
      store.write(async ({ db, auditIdentity }) => {
        const query = db.deleteFrom("oauth_clients").where("name", "=", name);
        const isRemoved = (await query.executeTakeFirstOrThrow()).numDeletedRows > 0n;
        if (isRemoved) await auditIdentity(byOperator("REMOVE_CLIENT", name));
        return isRemoved;
      }, safety),
  };
}

/** Describes granted rights for the audit log. */
function describeRights({ role, scopes, audiences, resources, mayExchange }: ClientRights): string {
  return [
    `role=${role}`,
    `scopes=${scopes.join(" ") || "none"}`,
    ...(audiences.length > 0 ? [`audiences=${audiences.join(" ")}`] : []),
    ...(resources.length > 0 ? [`resources=${resources.join(" ")}`] : []),
    ...(mayExchange ? ["exchange=true"] : []),
  ].join(", ");
}
