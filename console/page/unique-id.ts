/** Ids for elements that others refer to, such as the field of a label. */
import { useState } from "preact/hooks";

let last = 0;

/** An id that no other element of the document has; Preact's own repeats where a page has several trees. */
export function useUniqueId(): string {
  const [id] = useState(() => {
    last += 1;
    return `id-${last}`;
  });
  return id;
}
