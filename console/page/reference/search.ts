/** Full-text search over operations. */
import { type Group, nameOperation, type Operation } from "./document.ts";

/**
 * Operations that contain every word of a query, in their groups. Operations whose name contains the first
 * word come first. An empty query returns all operations.
 */
export function searchGroups(groups: readonly Group[], query: string): Group[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const [first = ""] = words;
  return groups
    .map((group) => {
      const found = group.operations.filter(({ text }) => words.every((word) => text.includes(word)));
      return { ...group, operations: words.length === 0 ? found : sortByName(found, first) };
    })
    .filter(({ operations }) => operations.length > 0);
}

function sortByName(operations: readonly Operation[], word: string): Operation[] {
  const rank = (one: Operation): number => {
    const at = nameOperation(one).toLowerCase().indexOf(word);
    return at === -1 ? 2 : Math.min(at, 1);
  };
  return operations.toSorted((a, b) => rank(a) - rank(b));
}
