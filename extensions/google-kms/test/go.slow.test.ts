/** Google's own client for Go, cloud.google.com/go/kms, over gRPC and over REST. */
import { testGoogleKeys } from "./keys-story.ts";
import { goProgram } from "./programs.ts";
import { testGoogleCalls } from "./story.ts";

testGoogleCalls(goProgram);
testGoogleKeys(goProgram);
