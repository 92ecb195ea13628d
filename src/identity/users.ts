/** Users who may log in to a server that runs with `--auth token`. */
import { randomUUID } from "node:crypto";
import type { RecordOf } from "../records/columns.ts";
import { systemPrincipal } from "../records/ownership.ts";
import { type FindOptions, openTable } from "../records/record-table.ts";
import { intact } from "../records/table-declaration.ts";
import type { Store } from "../store/store.ts";
import { byOperator } from "./identity-entry.ts";
import { clientTable, describeGeneration, type userRoles, userTable } from "./tables.ts";

/** These changes revoke tokens and must be possible on a full disk. */
const safety = { priority: "safety" } as const;

export type UserRole = (typeof userRoles)[number];

/** A user with the hash of their password. */
export type StoredUser = RecordOf<typeof userTable.columns>;

/** A user without the password hash. */
export type User = Omit<StoredUser, "passwordHash">;

/** Returns whether a store has any users or clients, damaged or not. */
export async function hasAccounts({ reader }: Pick<Store, "reader">): Promise<boolean> {
  const user = await reader.selectFrom("users").select("name").limit(1).executeTakeFirst();
  const client = await reader.selectFrom("oauth_clients").select("name").limit(1).executeTakeFirst();
  return (user ?? client) !== undefined;
}

export type UserStore = ReturnType<typeof createUserStore>;

/**
 * Returns the name of a user or client by ID; undefined if they were removed. Without users, an ID is a name.
 *
 * @throws RecordDamagedError
 */
export async function findOwnerName(
  users: UserStore | undefined,
  owner: string,
  options: FindOptions = {},
): Promise<string | undefined> {
  if (users === undefined || owner === systemPrincipal.userId) return owner;
  return users.findOwnerName(owner, options);
}

/** Creates the user store on top of the shared store. */
export function createUserStore(store: Store) {
  const users = openTable(store, userTable);
  const clients = openTable(store, clientTable);
  const find = (name: string) => users.findIntact({ name });
  return {
    /** @throws RecordDamagedError */
    find,
    /**
     * Finds the owner of a user's or client's records by name. Takes as long if no account has the name.
     *
     * @throws RecordDamagedError
     */
    async findOwner(name: string): Promise<string | undefined> {
      const [user, client] = [await find(name), await clients.findIntact({ name })];
      return (user ?? client)?.userId;
    },
    /**
     * Finds the name of the user or client that owns records, by `userId`.
     *
     * @throws RecordDamagedError
     */
    async findOwnerName(userId: string, options: FindOptions = {}): Promise<string | undefined> {
      const user = await users.findIntact({ userId }, options);
      return (user ?? (await clients.findIntact({ userId }, options)))?.name;
    },
    /**
     * Lists all users by name.
     *
     * @throws RecordDamagedError
     */
    async list(): Promise<User[]> {
      const rows = await users.select(store.reader).orderBy("name").execute();
      return rows.map((row) => users.requireIntact(users.readRow(row)));
    },
    /** @returns false if a user or client already has that name */
    add: (user: Pick<StoredUser, "name" | "role" | "passwordHash">, createdAt: Date) =>
      store.write(async (transaction) => {
        if (await users.find({ name: user.name }, transaction)) return false;
        if (await clients.find({ name: user.name }, transaction)) return false;
        // Names have no colon, so no name equals an ID.
        const userId = `user:${randomUUID()}`;
        const generation = randomUUID();
        await users.insert(transaction, { ...user, userId, generation, createdAt });
        const details = `role=${user.role}, ${describeGeneration(generation)}`;
        await transaction.auditIdentity(byOperator("CREATE_USER", user.name, details));
        return true;
      }),
    /**
     * Sets a password, which revokes all of the user's tokens.
     *
     * @returns false if no user has that name
     */
    setPassword: (name: string, passwordHash: string) =>
      store.write(async (transaction) => {
        const user = await users.findIntact({ name }, transaction);
        if (user === undefined) return false;
        const generation = randomUUID();
        await users.update(transaction, intact(user), { passwordHash, generation });
        await transaction.auditIdentity(byOperator("SET_PASSWORD", name, describeGeneration(generation)));
        return true;
      }, safety),
    /**
     * Removes a user, which revokes all their tokens.
     *
     * @returns false if no user has that name
     */
    remove: (name: string) =>
      store.write(async ({ db, auditIdentity }) => {
        const query = db.deleteFrom("users").where("name", "=", name);
        const isRemoved = (await query.executeTakeFirstOrThrow()).numDeletedRows > 0n;
        if (isRemoved) await auditIdentity(byOperator("REMOVE_USER", name));
        return isRemoved;
      }, safety),
  };
}
