/** The most changed letters that still count as a typing error. */
const maxDistance = 3;

/** The most names to suggest. */
const maxSuggested = 3;

/** Suggests at most three names: those that begin with the word, or else similar ones, the nearest first. */
export function suggest(word: string, names: readonly string[]): string[] {
  const lower = word.toLowerCase();
  // Of many names that begin alike, three would be an arbitrary choice.
  const longer = names.filter((name) => name.toLowerCase().startsWith(lower));
  if (longer.length > 0 && longer.length <= maxSuggested) return longer;
  return names
    .map((name) => ({ name, distance: measureDistance(lower, name.toLowerCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxSuggested)
    .map(({ name }) => name);
}

/** Counts the letters to insert, remove or replace (Levenshtein). */
function measureDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
