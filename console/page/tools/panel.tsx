/** The chosen record: beside its list, or on a narrow screen instead of it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { FailureNote } from "../parts/failure-note.tsx";
import type { Task } from "../task.ts";
import { useAddress } from "../use-address.ts";

/**
 * Returns the ID of the chosen record, which the address contains. When the reader closes the record, the focus returns
 * to its link in the list.
 *
 * @param name the address's parameter
 */
export function useChosen(name: string): string {
  const chosen = useAddress().query.get(name) ?? "";
  const opened = useRef("");
  useEffect(() => {
    if (chosen === "") findLink(opened.current)?.focus();
    opened.current = chosen === "" ? "" : location.hash;
  }, [chosen]);
  return chosen;
}

function findLink(hash: string): HTMLAnchorElement | undefined {
  const links = document.querySelectorAll<HTMLAnchorElement>(".records tbody a");
  return [...links].find((link) => link.hash === hash);
}

interface PanelProps {
  readonly title: string;
  readonly hint?: string | undefined;
  /** The link to the list: its text, and its address. */
  readonly back: string;
  readonly href: string;
  readonly loading: Task;
  /** The details; absent until they are loaded. */
  readonly children: ComponentChildren;
}

export function Panel({ title, hint, back, href, loading, children }: PanelProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const isReady = Boolean(children) || loading.failure !== undefined;
  useEffect(() => {
    if (isReady) heading.current?.focus();
  }, [isReady]);
  return (
    <section class="panel" aria-labelledby="chosen">
      <p>
        <a href={href}>← {back}</a>
      </p>
      <h2 id="chosen" ref={heading} tabIndex={-1}>
        {title} {hint && <span class="hint">{hint}</span>}
      </h2>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {children}
    </section>
  );
}
