/** Links to pages, each with its icon and its colour. */
import type { ComponentChildren } from "preact";
import type { PageEntry } from "../page-entry.ts";
import { Icon } from "../parts/icon.tsx";

export function Cards({ pages, kind }: { readonly pages: readonly PageEntry[]; readonly kind: string }) {
  return (
    <ul class={`cards ${kind}`}>
      {pages.map((page) => (
        <Card key={page.path} page={page}>
          {page.standards && <p class="hint">{page.standards}</p>}
        </Card>
      ))}
    </ul>
  );
}

function Card({ page, children }: { readonly page: PageEntry; readonly children?: ComponentChildren }) {
  return (
    <li class="card" data-accent={page.accent}>
      <span class="emblem">
        <Icon name={page.icon} />
      </span>
      <div>
        <h3>
          <a href={`#/${page.path}`}>{page.title}</a>
        </h3>
        <p class="summary">{page.summary}</p>
        {children}
      </div>
    </li>
  );
}
