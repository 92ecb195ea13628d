/** Call headers, without the conversions of the platform's Headers class. */
import type { IncomingHttpHeaders } from "node:http";

type Pairs = ReturnType<Headers["entries"]>;
type Texts = ReturnType<Headers["keys"]>;
type Values = Record<string, string | string[] | undefined>;

/**
 * Wraps the object that Node uses for headers. Reads and writes cost a lookup, while the platform's Headers
 * check and copy every name and value. Node checks names and values when it sends them.
 */
export class CallHeaders implements Headers {
  #values: Values;
  #isShared: boolean;

  /** @param received headers to read, copied on the first change. HTTP/2 pseudo-headers are hidden. */
  constructor(received?: Readonly<IncomingHttpHeaders>) {
    this.#values = received ?? {};
    this.#isShared = received !== undefined;
  }

  get(name: string): string | null {
    const value = this.#find(name.toLowerCase());
    if (value === undefined || name.startsWith(":")) return null;
    return typeof value === "string" ? value : value.join(", ");
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  set(name: string, value: string): void {
    this.#own()[name.toLowerCase()] = String(value);
  }

  append(name: string, value: string): void {
    const values = this.#own();
    const key = name.toLowerCase();
    const present = this.#find(key);
    if (present === undefined) values[key] = key === "set-cookie" ? [value] : value;
    else if (typeof present === "string") values[key] = `${present}, ${value}`;
    else values[key] = [...present, value];
  }

  delete(name: string): void {
    delete this.#own()[name.toLowerCase()];
  }

  getSetCookie(): string[] {
    const cookies = this.#values["set-cookie"] ?? [];
    return typeof cookies === "string" ? [cookies] : [...cookies];
  }

  forEach(visit: (value: string, name: string, headers: Headers) => void): void {
    for (const [name, value] of this) visit(value, name, this);
  }

  /** Sorted by name, with each cookie listed separately (Fetch, "sort and combine"). */
  *entries(): Pairs {
    for (const name of Object.keys(this.#values).sort()) {
      const value = this.#values[name];
      if (value === undefined || name.startsWith(":")) continue;
      if (typeof value === "string") yield [name, value];
      else if (name === "set-cookie") for (const cookie of value) yield [name, cookie];
      else yield [name, value.join(", ")];
    }
  }

  *keys(): Texts {
    for (const [name] of this) yield name;
  }

  *values(): Texts {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator](): Pairs {
    return this.entries();
  }

  /** The headers in the form that Node sends. The caller must not change them. */
  toNode(): Readonly<Record<string, string | string[] | undefined>> {
    return this.#values;
  }

  /** A list of alternating names and values, after the given ones. Node copies an object, but not a list. */
  toList(...first: string[]): string[] {
    for (const name of Object.keys(this.#values)) {
      const value = this.#values[name];
      if (typeof value === "string") first.push(name, value);
      else for (const one of value ?? []) first.push(name, one);
    }
    return first;
  }

  /** Node's object has a prototype, whose "constructor" is not a header. */
  #find(key: string): string | string[] | undefined {
    return Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
  }

  #own(): Values {
    if (this.#isShared) this.#values = { ...this.#values };
    this.#isShared = false;
    return this.#values;
  }
}
