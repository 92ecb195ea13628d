/** Ids for elements that others refer to, such as a label's field. */
import { useState } from "preact/hooks";

let last = 0;

/** An id that is unique in the document; Preact's own ids repeat if a page has several trees. */
export function useUniqueId(): string {
  const [id] = useState(() => {
    last += 1;
    return `id-${last}`;
  });
  return id;
}
