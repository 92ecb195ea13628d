/**
 * The list of calls by service. A service is folded unless its call is shown or a search matches some of its
 * calls.
 */
import { type Group, nameOperation, type Operation } from "./document.ts";

interface CallListProps {
  readonly groups: readonly Group[];
  readonly current: Operation | undefined;
  readonly isSearch: boolean;
}

export function CallList({ groups, current, isSearch }: CallListProps) {
  const count = groups.reduce((sum, { operations }) => sum + operations.length, 0);
  return (
    <>
      <p class={isSearch ? "hint" : "unseen"} role="status">
        {isSearch ? (count === 0 ? "No matching call" : `${count} ${count === 1 ? "call" : "calls"}`) : ""}
      </p>
      {groups.map(({ name, operations }) => (
        <details key={name} open={isSearch || operations.includes(current as Operation)}>
          <summary>
            <Breakable name={name} /> <span class="hint">{operations.length}</span>
          </summary>
          <ul>
            {operations.map((one) => (
              <li key={one.operationId}>
                <a href={`#/${one.operationId}`} aria-current={one === current ? "page" : undefined}>
                  <Verb verb={one.verb} />
                  <span>{nameOperation(one)}</span>
                </a>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </>
  );
}

/** A name that may break after its dots. */
function Breakable({ name }: { readonly name: string }) {
  return (
    <>
      {name.split(/(?<=\.)/).map((part, i) => (
        <span key={part}>
          {i > 0 && <wbr />}
          {part}
        </span>
      ))}
    </>
  );
}

/** The HTTP method. */
export function Verb({ verb }: { readonly verb: string }) {
  return (
    <span class="http-verb" data-verb={verb}>
      {verb === "DELETE" ? "DEL" : verb}
    </span>
  );
}

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
