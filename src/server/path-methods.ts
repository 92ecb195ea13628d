/** The paths of pages and their methods. */

export interface PathMethods {
  /** Adds a path in Fastify's form: "/console/:name". */
  add(path: string, methods: readonly string[]): void;
  /** Returns whether a path was added. */
  has(path: string): boolean;
  /**
   * Returns the methods of a path that does not support this one, formatted for the `allow` header. Undefined
   * if the path supports the method or was not added.
   */
  allowInstead(method: string, path: string): string | undefined;
}

export function createPathMethods(): PathMethods {
  const methodsOf = new Map<string, Set<string>>();
  const patterns: { readonly pattern: RegExp; readonly path: string }[] = [];
  const find = (path: string): ReadonlySet<string> | undefined =>
    methodsOf.get(path) ?? methodsOf.get(patterns.find(({ pattern }) => pattern.test(path))?.path ?? "");
  return {
    has: (path) => find(path) !== undefined,
    add(path, methods) {
      if (!methodsOf.has(path) && path.includes(":")) patterns.push({ pattern: toPattern(path), path });
      const known = methodsOf.getOrInsert(path, new Set());
      for (const method of methods) known.add(method);
    },
    allowInstead(method, path) {
      const known = find(path);
      return known === undefined || known.has(method) ? undefined : [...known].sort().join(", ");
    },
  };
}

function toPattern(path: string): RegExp {
  const segments = path
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : RegExp.escape(segment)));
  return new RegExp(`^${segments.join("/")}$`);
}
