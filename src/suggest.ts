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
    .map((name) => ({ name, distance: measureDistance(lower, name.toLowerCase(), maxDistance) }))
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
    const distance = measureDistance(lower, name.toLowerCase(), Math.min(least, limitChanges(lower, name)));
    if (distance > least) continue;
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
 * @param atMost the distance beyond which the exact number does not matter; the time is proportional to it
 * @returns Infinity for more than `atMost`
 */
export function measureDistance(a: string, b: string, atMost: number): number {
  if (Math.abs(a.length - b.length) > atMost) return Number.POSITIVE_INFINITY;
  let start = 0;
  while (start < a.length && start < b.length && a.charCodeAt(start) === b.charCodeAt(start)) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a.charCodeAt(endA - 1) === b.charCodeAt(endB - 1)) {
    endA -= 1;
    endB -= 1;
  }
  const [rows, columns] = [endA - start, endB - start];
  if (rows === 0 || columns === 0) return rows + columns;
  // Cell j of row i is the distance between the first i letters of one word and the first j of the other. One
  // row suffices.
  if (row.length <= columns) [row, before] = [new Uint16Array(2 * columns), new Uint16Array(2 * columns)];
  for (let j = 0; j <= columns; j += 1) row[j] = j;
  for (let i = 1; i <= rows; i += 1) {
    // Cells farther from the diagonal than this are beyond the limit.
    const [from, to] = [Math.max(1, i - atMost), Math.min(columns, i + atMost)];
    let diagonal = row[from - 1] ?? 0;
    // The cell two rows up and two columns to the left.
    let swapped = from === 1 ? beyond : (before[from - 2] ?? 0);
    let left = from === 1 ? i : beyond;
    row[from - 1] = left;
    let least = left;
    const letter = a.charCodeAt(start + i - 1);
    const earlier = i === 1 ? Number.NaN : a.charCodeAt(start + i - 2);
    for (let j = from; j <= to; j += 1) {
      // The cell above the last one in the band is outside the previous row's band.
      const above = j === i + atMost ? beyond : (row[j] ?? 0);
      const other = b.charCodeAt(start + j - 1);
      const replaced = letter === other ? diagonal : diagonal + 1;
      left = Math.min(replaced, above + 1, left + 1);
      if (j > 1 && other === earlier && letter === b.charCodeAt(start + j - 2))
        left = Math.min(left, swapped + 1);
      swapped = before[j - 1] ?? 0;
      before[j - 1] = diagonal;
      diagonal = above;
      row[j] = left;
      if (left < least) least = left;
    }
    if (least > atMost) return Number.POSITIVE_INFINITY;
  }
  const distance = row[columns] ?? 0;
  return distance <= atMost ? distance : Number.POSITIVE_INFINITY;
}

/** Larger than any distance that is counted. */
const beyond = 60_000;

/** Reused, because a search compares many short words. */
let row = new Uint16Array(64);
let before = new Uint16Array(64);
