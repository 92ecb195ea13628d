/** The home page: a live signature, and links to all pages. */

import { type PageEntry, stories, tools, views } from "../pages.ts";
import { colour, Icon } from "../parts/icon.tsx";
import { Lead } from "../parts/lead.tsx";
import { SignatureView } from "./signature-view.tsx";

/** The stories to begin with. */
const featured: readonly string[] = ["handshake", "keys", "tunnel"];
/** The other pages by subject, in display order. */
const groups: readonly (readonly [string, readonly string[]])[] = [
  ["Basics", ["sign", "key-exchange", "encryption", "contracts"]],
  ["Identity", ["tokens", "devices", "wallets"]],
  ["Ledgers", ["log", "chain", "governance", "provenance"]],
];

const all = [...stories, ...views];

function find(paths: readonly string[]): readonly PageEntry[] {
  return paths.flatMap((path) => all.find((page) => page.path === path) ?? []);
}

const grouped = new Set([...featured, ...groups.flatMap(([, paths]) => paths)]);

export function Page() {
  const subjects = groups.map(([title, paths]) => ({ title, pages: find(paths) }));
  const others = [...all.filter(({ path }) => !grouped.has(path)), ...tools];
  return (
    <div class="home">
      <Lead
        title={
          <>
            Today’s signatures will not survive quantum computers. <em>This one is built to.</em>
          </>
        }
      >
        A large quantum computer will forge the RSA and elliptic-curve signatures that protect software
        updates, payments and log-ins. ML-DSA, the NIST standard below, is built to resist it; the price is
        size.
      </Lead>
      <SignatureView />
      <h2>See it at work</h2>
      <p class="text">
        Each page makes real calls to this server, and shows every byte.{" "}
        <a href="/reference">Call it yourself</a> from a terminal or a program.
      </p>
      <Cards pages={find(featured)} />
      <div class="subjects">
        {[...subjects, { title: "Explore and operate", pages: others }].map(
          ({ title, pages }) =>
            pages.length > 0 && (
              <section key={title}>
                <h3>{title}</h3>
                <Cards pages={pages} isCompact />
              </section>
            ),
        )}
      </div>
    </div>
  );
}

interface CardsProps {
  readonly pages: readonly PageEntry[];
  /** Whether to show them without frames, as the entries of a group. */
  readonly isCompact?: boolean;
}

/** Links to pages, each with its icon and colour. */
function Cards({ pages, isCompact = false }: CardsProps) {
  return (
    <ul class={isCompact ? "cards compact" : "cards"}>
      {pages.map(({ path, title, summary }) => (
        <li key={path} class="card" {...colour(path)}>
          <Icon path={path} />
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
