/** Links to pages, each with its icon and colour. */
import { colour } from "../colour.ts";
import type { PageEntry } from "../pages.ts";
import { Icon } from "../parts/icon.tsx";

export function Cards({ pages }: { readonly pages: readonly PageEntry[] }) {
  return (
    <ul class="cards">
      {pages.map(({ path, title, summary, standards, icon, hue }) => (
        <li key={path} class="card" {...colour(hue)}>
          <span class="emblem">
            <Icon name={icon} />
          </span>
          <div>
            <h3>
              <a href={`#/${path}`}>{title}</a>
            </h3>
            <p class="summary">{summary}</p>
            {standards && <p class="hint">{standards}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
