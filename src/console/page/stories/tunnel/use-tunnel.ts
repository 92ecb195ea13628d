/** All steps of the story, so that its diagram sees them together. */
import { useRef } from "preact/hooks";
import type { TunnelEnd } from "../../../../client/tunnel-end.ts";
import { useForm } from "../../form.ts";
import { useStep } from "../../step.tsx";
import { catchIntermediary, swapKeys } from "./intermediary-steps.ts";
import {
  changePackets,
  type EndHolder,
  endTunnel,
  meetGateway,
  receiveThrough,
  registerEnd,
  repeatPacket,
  sendThrough,
  shakeHands,
  takeNewKey,
} from "./steps.ts";

export type Tunnel = ReturnType<typeof useTunnel>;

export function useTunnel() {
  const form = useForm({ name: "Laptop", out: "GET /meters HTTP/1.1", back: "HTTP/1.1 200 OK" });
  const { name, out, back } = form.values;
  const end: EndHolder = useRef<TunnelEnd | undefined>(undefined);
  const meeting = useStep(meetGateway);
  const registering = useStep((caller) => registerEnd(caller, name), [meeting]);
  const shaking = useStep(
    (caller, gateway, registered) => shakeHands(caller, end, gateway, registered),
    [meeting, registering],
  );
  const sending = useStep(
    (caller, registered) => sendThrough(caller, end, registered, out),
    [registering, shaking],
  );
  const receiving = useStep(
    (caller, registered) => receiveThrough(caller, end, registered, back),
    [registering, shaking],
  );
  const repeating = useStep(repeatPacket, [registering, sending]);
  const altering = useStep(
    (caller, registered, received) => changePackets(caller, end, registered, received, out),
    [registering, receiving],
  );
  const rekeying = useStep(
    (caller, gateway, registered) => takeNewKey(caller, end, gateway, registered),
    [meeting, registering, shaking],
  );
  const swapping = useStep(swapKeys, [meeting]);
  const catching = useStep(catchIntermediary, [meeting, swapping]);
  const ending = useStep((caller, registered) => endTunnel(caller, end, registered), [registering]);
  return {
    form,
    meeting,
    registering,
    shaking,
    sending,
    receiving,
    repeating,
    altering,
    rekeying,
    swapping,
    catching,
    ending,
  };
}
