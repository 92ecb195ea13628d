/** The state of a record: a word, and a colour that says the same for those with one. */
export function State({ state }: { readonly state: string }) {
  if (state === "") return <span class="hint">–</span>;
  return (
    <span class="badge" data-status={state}>
      {state}
    </span>
  );
}
