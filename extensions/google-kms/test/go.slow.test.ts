/** Google's Go client, cloud.google.com/go/kms, over gRPC and REST. */
import { testGoogleKeys } from "./keys-story.ts";
import { goProgram } from "./programs.ts";
import { testGoogleCalls } from "./story.ts";

testGoogleCalls(goProgram);
testGoogleKeys(goProgram);
