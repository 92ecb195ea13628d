/** The browser's address, for components that depend on it. */
import { useEffect, useState } from "preact/hooks";
import { type Address, parseAddress } from "./address.ts";

/** The current address. */
export function useAddress(): Address {
  const [hash, setHash] = useState(() => location.hash);
  useEffect(() => {
    const onChange = (): void => setHash(location.hash);
    addEventListener("hashchange", onChange);
    // Effects run after the first paint, and a link may have been followed by then.
    onChange();
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return parseAddress(hash);
}
