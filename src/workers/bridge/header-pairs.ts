/** Headers in a form that threads can send each other. */

/** Headers, with a pair for each cookie. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** Lists headers. */
export function packHeaders(headers: Headers): HeaderPairs {
  return [...headers];
}

/** Sets headers, in place of those of the same names. @returns the target */
export function setHeaders(target: Headers, pairs: HeaderPairs): Headers {
  for (const [name] of pairs) target.delete(name);
  for (const [name, value] of pairs) target.append(name, value);
  return target;
}
