/** Who may log in while the server runs with `--auth token`. */
import { randomUUID } from "node:crypto";
import { readTime } from "../database/row-values.ts";
import type { UsersTable } from "../database/schema.ts";
import type { Store, WriteTransaction } from "../store/store.ts";

/** What users may do, least first. */
export const userRoles = ["user", "auditor", "admin"] as const;

/** What a user may do. */
export type UserRole = (typeof userRoles)[number];

/** Somebody who may log in. */
export interface User {
  readonly name: string;
  /**
   * Owns what the user makes. It is random, never changes, and is never given to another user, also not to one who
   * later has the same name. For users from before there were IDs it is the name; a new ID is never a name.
   */
  readonly userId: string;
  readonly role: UserRole;
  /** Changes with the password; tokens of another generation are not accepted. */
  readonly generation: string;
  readonly createdAt: Date;
}

/** A user with the hash of their password: see passwords.ts. */
export interface StoredUser extends User {
  readonly passwordHash: string;
}

/** The users of a store; what was changed behind our back throws RecordDamaged. */
export interface UserStore {
  find(name: string): Promise<StoredUser | undefined>;
  /** All, by their names. */
  list(): Promise<User[]>;
  /** @returns false if there is somebody of that name */
  add(user: Pick<StoredUser, "name" | "role" | "passwordHash">, now: Date): Promise<boolean>;
  /** Sets a password, which ends all tokens of the user. @returns false if there is nobody of that name */
  setPassword(name: string, passwordHash: string): Promise<boolean>;
  /** Removes a user and so ends all their tokens. @returns false if there is nobody of that name */
  remove(name: string): Promise<boolean>;
}

/** Makes the users' store on the store of all. */
export function createUserStore(store: Store): UserStore {
  const read = async (db: WriteTransaction["db"], name: string): Promise<StoredUser | undefined> => {
    const row = await db.selectFrom("users").selectAll().where("name", "=", name).executeTakeFirst();
    if (row === undefined) return undefined;
    const user = toUser(row);
    store.requireTagged(`user ${name}`, listTaggedFields(user), row.record_tag);
    return user;
  };
  return {
    find: (name) => read(store.reader, name),
    async list() {
      const rows = await store.reader.selectFrom("users").selectAll().orderBy("name").execute();
      return rows.map((row) => {
        const user = toUser(row);
        store.requireTagged(`user ${row.name}`, listTaggedFields(user), row.record_tag);
        return user;
      });
    },
    add: ({ name, role, passwordHash }, now) =>
      store.write(async ({ db }) => {
        const taken = await db.selectFrom("users").select("name").where("name", "=", name).executeTakeFirst();
        if (taken !== undefined) return false;
        // A name has no colon.
        const userId = `user:${randomUUID()}`;
        const user: StoredUser = {
          name,
          userId,
          role,
          passwordHash,
          generation: randomUUID(),
          createdAt: now,
        };
        await db.insertInto("users").values(toRow(store, user)).execute();
        return true;
      }),
    setPassword: (name, passwordHash) =>
      store.write(async ({ db }) => {
        const user = await read(db, name);
        if (user === undefined) return false;
        const changed = { ...user, passwordHash, generation: randomUUID() };
        await db.updateTable("users").set(toRow(store, changed)).where("name", "=", name).execute();
        return true;
      }),
    remove: (name) =>
      store.write(async ({ db }) => {
        const { numDeletedRows } = await db
          .deleteFrom("users")
          .where("name", "=", name)
          .executeTakeFirstOrThrow();
        return numDeletedRows > 0n;
      }),
  };
}

/** All that a user's tag binds; in this order for the life of a store. */
function listTaggedFields({ name, userId, role, passwordHash, generation, createdAt }: StoredUser) {
  const fields = ["users", name, role, passwordHash, generation, createdAt.getTime()];
  // The tags of users from before there were IDs do not have it; their ID is the name.
  return userId === name ? fields : [...fields, userId];
}

function toRow(store: Store, user: StoredUser): UsersTable {
  return {
    name: user.name,
    user_id: user.userId,
    role: user.role,
    password_hash: user.passwordHash,
    generation: user.generation,
    created_at_ms: user.createdAt.getTime(),
    record_tag: store.tagRecord(listTaggedFields(user)),
  };
}

function toUser(row: UsersTable): StoredUser {
  const role = userRoles.find((known) => known === row.role);
  return {
    name: row.name,
    userId: row.user_id,
    // A role that nobody knows was put there by somebody else, which the tag tells.
    role: role ?? "user",
    passwordHash: row.password_hash,
    generation: row.generation,
    createdAt: readTime(row.created_at_ms),
  };
}
