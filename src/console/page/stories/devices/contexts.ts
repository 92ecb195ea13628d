/** The contexts of a device's signatures, which keep one use from another (proto/iot, IotService). */
import { toUtf8 } from "../../values.ts";

export const challengeContext = toUtf8("qsp-iot-challenge-v1");
export const numberedReadingContext = toUtf8("qsp-iot-numbered-reading-v1");
