/** Finds names that a person may have meant. */

/** Maximum edit distance that counts as a typo. */
const maxDistance = 3;

/** Maximum number of suggested names. */
const maxSuggested = 3;

/** Suggests at most three names: those that begin with the word, or else similar ones, nearest first. */
export function suggest(word: string, names: readonly string[]): string[] {
  const lower = word.toLowerCase();
  // If many names begin alike, three of them would be an arbitrary choice.
  const longer = names.filter((name) => name.toLowerCase().startsWith(lower));
  if (longer.length > 0 && longer.length <= maxSuggested) return longer;
  return names
    .map((name) => ({ name, distance: measureDistance(lower, name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= limitChanges(lower, name))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxSuggested)
    .map(({ name }) => name);
}

/**
 * Finds the one name that is nearer to a word than all others.
 *
 * @returns undefined if two names are equally near, or if none has at least half of its letters in common
 */
export function findNearest(word: string, names: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  let nearest: string | undefined;
  let least = maxDistance + 1;
  for (const name of names) {
    const distance = measureDistance(lower, name.toLowerCase());
    if (distance > Math.min(least, limitChanges(lower, name))) continue;
    nearest = distance < least ? name : undefined;
    least = distance;
  }
  return nearest;
}

/** Maximum edits between a word and a typo. Three edits leave nothing of a short word. */
function limitChanges(a: string, b: string): number {
  return Math.min(maxDistance, Math.floor(Math.max(a.length, b.length) / 2));
}

/**
 * Counts the letters to insert, remove or replace, and the neighbours to swap (optimal string alignment):
 * "sgin" is one edit away from "sign".
 *
 * @returns Infinity if the lengths differ too much for a typo, so that a long word costs nothing
 */
export function measureDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > maxDistance) return Number.POSITIVE_INFINITY;
  // Cell j of row i is the distance between the first i letters of one word and the first j of the other.
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const read = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = read(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const areSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = areSwapped ? read(i - 2, j - 2) + 1 : replaced;
      row.push(Math.min(replaced, swapped, read(i - 1, j) + 1, read(i, j - 1) + 1));
    }
  }
  return read(a.length, b.length);
}
