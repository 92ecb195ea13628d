/** All steps of the story, so that its diagram sees them together. */
import { useForm } from "../../form.ts";
import { useStep } from "../../step.tsx";
import { decapsulate, decapsulateChanged, encapsulate, makeKeyPair } from "./steps.ts";

export type KeyExchange = ReturnType<typeof useKeyExchange>;

export function useKeyExchange() {
  const form = useForm({ algorithm: "ML-KEM-768" });
  const preparing = useStep(() => makeKeyPair(form.values.algorithm));
  const encapsulating = useStep(encapsulate, [preparing]);
  const decapsulating = useStep(
    (_caller, keyPair, exchange) => decapsulate(keyPair, exchange),
    [preparing, encapsulating],
  );
  const breaking = useStep(
    (_caller, keyPair, exchange) => decapsulateChanged(keyPair, exchange),
    [preparing, encapsulating],
  );
  return { form, preparing, encapsulating, decapsulating, breaking };
}
