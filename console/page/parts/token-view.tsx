/** Shows a decoded token. */
import type { TokenParts } from "../jwt.ts";
import { shorten } from "../values.ts";
import { Bytes } from "./bytes-view.tsx";

interface TokenViewProps {
  readonly token: string;
  readonly parts: TokenParts;
  /** The signature's label. */
  readonly label: string;
}

export function TokenView({ token, parts, label }: TokenViewProps) {
  return (
    <>
      <p class="token">{shorten(token, 160)}</p>
      <h3>Header</h3>
      <pre class="code">{JSON.stringify(parts.header, undefined, 2)}</pre>
      <h3>Payload</h3>
      <pre class="code">{JSON.stringify(parts.payload, undefined, 2)}</pre>
      <Bytes label={label} value={parts.signature} />
    </>
  );
}
