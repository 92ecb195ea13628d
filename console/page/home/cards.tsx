/** Links to pages, each with its icon and colour. */
import { colour } from "../colour.ts";
import type { PageEntry } from "../pages.ts";
import { Icon } from "../parts/icon.tsx";

interface CardsProps {
  readonly pages: readonly PageEntry[];
  /** Whether to show them without frames, as the entries of a group. */
  readonly isCompact?: boolean;
}

export function Cards({ pages, isCompact = false }: CardsProps) {
  return (
    <ul class={isCompact ? "cards compact" : "cards"}>
      {pages.map(({ path, title, summary, icon, hue }) => (
        <li key={path} class="card" {...colour(hue)}>
          <Icon name={icon} />
          <div>
            <h3>
              <a href={`#/${path}`}>{title}</a>
            </h3>
            <p class="summary">{summary}</p>
          </div>
        </li>
      ))}
    </ul>
  );
}
