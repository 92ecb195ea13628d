/** Almost valid requests: mutations of valid ones, reproducible by their seed. */

/** A seeded pseudo-random generator (mulberry32, by Tommy Ettinger, public domain). */
export interface Random {
  /** Returns an integer from 0 to below `end`. */
  below(end: number): number;
  pick<T>(items: readonly T[]): T;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (end: number): number => next() % end;
  return { below, pick: (items) => items[below(items.length)] as (typeof items)[number] };
}

/** Mutates bytes in one to four places: flips, cuts, duplicates, inserts, and overwrites with known troublemakers. */
export function mutate(random: Random, bytes: Uint8Array): Buffer {
  let mutated = Buffer.from(bytes);
  for (let times = 1 + random.below(4); times > 0; times -= 1) {
    const at = random.below(mutated.length + 1);
    const length = random.below(Math.min(16, mutated.length - at) + 1);
    const head = mutated.subarray(0, at);
    const tail = mutated.subarray(at + length);
    switch (random.below(6)) {
      case 0:
        mutated = Buffer.from(mutated);
        if (at < mutated.length) mutated[at] = (mutated[at] ?? 0) ^ (1 << random.below(8));
        break;
      case 1:
        mutated = Buffer.concat([head, tail]);
        break;
      case 2:
        mutated = Buffer.concat([head, mutated.subarray(at, at + length), mutated.subarray(at)]);
        break;
      case 3:
        mutated = Buffer.concat([
          head,
          Buffer.from(Array.from({ length }, () => random.below(256))),
          mutated.subarray(at),
        ]);
        break;
      case 4:
        mutated = Buffer.from(head);
        break;
      default:
        mutated = Buffer.concat([head, Buffer.from(random.pick(awkwardTexts)), tail]);
    }
  }
  return mutated;
}

/** Text that parsers stumble over. */
const awkwardTexts = [
  ...["\0", "%", "%2", "%zz", "%00", "%2F", "%C0%AF", "..", "//", ":", "=", "&&", "a.b.c.d"],
  ...["{", "}", "[[[[[[[[", '"', "\\", "\\ud800", "null", "true", "__proto__", "constructor"],
  ...["-0", "1e400", "9007199254740993", "99999999999999999999999999"],
  ...["\r\n", "\n\n", "\r\nContent-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"],
  ...["\xff\xff\xff\xff", "\u{1f600}", "application/grpc", "gzip", "*/*;q=x"],
];
