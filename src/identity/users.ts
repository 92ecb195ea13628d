/** Who may log in while the server runs with `--auth token`. */
import { randomUUID } from "node:crypto";
import { column, type RecordOf, type TaggedRow } from "../records/columns.ts";
import { openTable } from "../records/record-table.ts";
import { intact, requireIntact, type TableDeclaration } from "../records/table-declaration.ts";
import type { Store } from "../store/store.ts";

/** What users may do, least first. */
export const userRoles = ["user", "auditor", "admin"] as const;

/** What a user may do. */
export type UserRole = (typeof userRoles)[number];

const columns = {
  name: column.text("name"),
  role: column.choice("role", userRoles),
  /** Of scrypt, with its parameters: see passwords.ts. */
  passwordHash: column.text("password_hash"),
  /** Changes with the password; tokens of another generation are not accepted. */
  generation: column.text("generation"),
  createdAt: column.time("created_at_ms"),
  /** Owns what the user makes. Random, it never changes, and no later user of the same name gets it. */
  userId: column.text("user_id"),
};

/** A user with the hash of their password. */
export type StoredUser = RecordOf<typeof columns>;

/** Somebody who may log in. */
export type User = Omit<StoredUser, "passwordHash">;

declare module "../database/schema.ts" {
  interface Schema {
    users: TaggedRow<typeof columns>;
  }
}

const userTable: TableDeclaration<typeof columns> = {
  name: "users",
  columns,
  key: ["name"],
  orderedBy: "name",
  describe: ({ name }) => `user ${name}`,
};

/** The users of a store. */
export type UserStore = ReturnType<typeof createUserStore>;

/** Makes the users' store on the store of all. */
export function createUserStore(store: Store) {
  const users = openTable(store, userTable);
  return {
    /** @throws RecordDamagedError */
    find: (name: string) => users.findIntact({ name }),
    /** Lists all, by their names. @throws RecordDamagedError */
    async list(): Promise<User[]> {
      const rows = await store.reader.selectFrom("users").selectAll().orderBy("name").execute();
      return rows.map((row) => requireIntact(users.readRow(row), `user ${row.name}`));
    },
    /** @returns false if there is somebody of that name */
    add: (user: Pick<StoredUser, "name" | "role" | "passwordHash">, createdAt: Date) =>
      store.write(async (transaction) => {
        if (await users.find({ name: user.name }, transaction)) return false;
        // A name has no colon.
        const userId = `user:${randomUUID()}`;
        await users.insert(transaction, { ...user, userId, generation: randomUUID(), createdAt });
        return true;
      }),
    /** Sets a password, which ends all tokens of the user. @returns false if there is nobody of that name */
    setPassword: (name: string, passwordHash: string) =>
      store.write(async (transaction) => {
        const user = await users.findIntact({ name }, transaction);
        if (user === undefined) return false;
        await users.update(transaction, intact(user), { passwordHash, generation: randomUUID() });
        return true;
      }),
    /** Removes a user and so ends all their tokens. @returns false if there is nobody of that name */
    remove: (name: string) =>
      store.write(async ({ db }) => {
        const query = db.deleteFrom("users").where("name", "=", name);
        return (await query.executeTakeFirstOrThrow()).numDeletedRows > 0n;
      }),
  };
}
