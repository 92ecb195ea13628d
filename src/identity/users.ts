/** Who may log in while the server runs with `--auth token`. */
import { randomUUID } from "node:crypto";
import { choice, type RecordOf, type RowOf, type TagColumn, text, time } from "../records/columns.ts";
import { openTable, requireIntact, type TableDeclaration } from "../records/record-table.ts";
import type { Store } from "../store/store.ts";

/** What users may do, least first. */
export const userRoles = ["user", "auditor", "admin"] as const;

/** What a user may do. */
export type UserRole = (typeof userRoles)[number];

const columns = {
  name: text("name"),
  role: choice("role", userRoles),
  /** Of scrypt, with its parameters: see passwords.ts. */
  passwordHash: text("password_hash"),
  /** Changes with the password; tokens of another generation are not accepted. */
  generation: text("generation"),
  createdAt: time("created_at_ms"),
  /**
   * Owns what the user makes. It is random, never changes, and is never given to another user, also not to one who
   * later has the same name.
   */
  userId: text("user_id"),
};

/** A user with the hash of their password. */
export type StoredUser = RecordOf<typeof columns>;

/** Somebody who may log in. */
export type User = Omit<StoredUser, "passwordHash">;

declare module "../database/schema.ts" {
  interface Schema {
    users: RowOf<typeof columns> & TagColumn;
  }
}

const userTable: TableDeclaration<typeof columns> = {
  name: "users",
  columns,
  key: ["name"],
  orderedBy: "name",
  describe: ({ name }) => `user ${name}`,
};

/** The users of a store; what was changed behind our back throws RecordDamagedError. */
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
  const users = openTable(store, userTable);
  return {
    find: (name) => users.findIntact({ name }),
    async list() {
      const rows = await store.reader.selectFrom("users").selectAll().orderBy("name").execute();
      return rows.map((row) => requireIntact(users.readRow(row), `user ${row.name}`));
    },
    add: (user, now) =>
      store.write(async (transaction) => {
        if ((await users.find({ name: user.name }, transaction.db)) !== undefined) return false;
        // A name has no colon.
        const userId = `user:${randomUUID()}`;
        await users.insert(transaction, { ...user, userId, generation: randomUUID(), createdAt: now });
        return true;
      }),
    setPassword: (name, passwordHash) =>
      store.write(async (transaction) => {
        const record = await users.findIntact({ name }, transaction.db);
        if (record === undefined) return false;
        const change = { passwordHash, generation: randomUUID() };
        await users.update(transaction, { record, isIntact: true }, change);
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
