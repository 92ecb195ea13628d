import { example } from "../../src/calls/example.ts";

export const examples = [
  example("greeting.GreetingService.Greet", "greet", "Greets Ada.", { name: "Ada" }),
  example("greeting.GreetingService.GetHealth", "get-greeting-health", "Checks the health of the service."),
];
