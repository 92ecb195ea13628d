/**
 * Makes scrypt cheap in the process of a test file whose subject is not the cost of passwords:
 *
 *     vi.mock("node:crypto", async (load) => (await import("…/cheap-scrypt.ts")).cheapen(await load()));
 *
 * The code under test makes and checks its hashes with the parameters that it has; what it computes is no scrypt of
 * them. One hash in full takes 300 ms of a core.
 */
import type * as crypto from "node:crypto";

/** What scrypt is computed with instead of the parameters that it is given. */
export const leastScrypt = { N: 2, r: 1, p: 1 } as const;

/** The module with an scrypt of the least cost. */
export function cheapen(module: typeof crypto): typeof crypto {
  const scrypt: typeof module.scrypt = (
    password: crypto.BinaryLike,
    salt: crypto.BinaryLike,
    bytes: number,
    ...rest: unknown[]
  ) => module.scrypt(password, salt, bytes, leastScrypt, rest.at(-1) as () => void);
  return { ...module, scrypt };
}
