/** A transcript of a handshake, in its parts: tunnel, ciphertext, and hash of the key that it was made for. */
import { Facts } from "../../parts/facts.tsx";
import { shorten } from "../../values.ts";

export function readTranscript(text: string) {
  const [tunnelId = "", ciphertext = "", keyHash = ""] = text.split(":");
  return { tunnelId, ciphertext, keyHash };
}

export function Transcript({ text }: { readonly text: string }) {
  const { tunnelId, ciphertext, keyHash } = readTranscript(text);
  return (
    <>
      <h3>Transcript</h3>
      <Facts
        facts={{
          Tunnel: <code>{tunnelId}</code>,
          "Ciphertext, in base64": <code>{shorten(ciphertext)}</code>,
          "SHA-256 of the key": <code>{keyHash}</code>,
        }}
      />
    </>
  );
}
