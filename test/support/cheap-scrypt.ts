/**
 * Makes scrypt cheap in test files that do not test the cost of password hashing:
 *
 *     vi.mock("node:crypto", async (load) => (await import("…/cheap-scrypt.ts")).cheapen(await load()));
 *
 * The code under test keeps its parameters, but the computed hashes use cheaper ones. One full hash takes 300 ms of a
 * core.
 */
import type * as crypto from "node:crypto";

/** Cheap parameters that replace the caller's. */
export const leastScrypt = { N: 2, r: 1, p: 1 } as const;

/** Returns the module with a minimum-cost scrypt. */
export function cheapen(module: typeof crypto): typeof crypto {
  const scrypt: typeof module.scrypt = (
    password: crypto.BinaryLike,
    salt: crypto.BinaryLike,
    bytes: number,
    ...rest: unknown[]
  ) => module.scrypt(password, salt, bytes, leastScrypt, rest.at(-1) as () => void);
  return { ...module, scrypt };
}
