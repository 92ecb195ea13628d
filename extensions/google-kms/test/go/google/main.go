// Command google calls a key service with cloud.google.com/go/kms, over gRPC and REST.
//
// It reads one call per line from standard input and writes one outcome per line, both as JSON in the format of
// ../python/google_kms.py. Its only argument is the server's address, "127.0.0.1:port".
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	kms "cloud.google.com/go/kms/apiv1"
	"github.com/googleapis/gax-go/v2/apierror"
	"golang.org/x/oauth2"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// call is the call to make. The request is its message in JSON.
type call struct {
	Transport string          `json:"transport"`
	Method    string          `json:"method"`
	Request   json.RawMessage `json:"request"`
	Token     string          `json:"token"`
}

// failure is an error as the library reports it.
type failure struct {
	Class    string            `json:"class"`
	Code     string            `json:"code,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Domain   string            `json:"domain,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Message  string            `json:"message"`
}

// outcome is an answer or an error.
type outcome struct {
	Answer any      `json:"answer,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	results := json.NewEncoder(os.Stdout)
	clients := map[string]*kms.KeyManagementClient{}
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var wanted call
		if err == nil {
			err = json.Unmarshal(line, &wanted)
		}
		if err == nil {
			key := wanted.Transport + " " + wanted.Token
			if clients[key] == nil {
				clients[key], err = connect(wanted)
			}
			if err == nil {
				err = results.Encode(run(clients[key], wanted))
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func connect(wanted call) (*kms.KeyManagementClient, error) {
	ctx := context.Background()
	if wanted.Transport == "grpc" {
		return kms.NewKeyManagementClient(ctx,
			option.WithEndpoint("passthrough:///"+os.Args[1]),
			option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	}
	endpoint := option.WithEndpoint("http://" + os.Args[1])
	if wanted.Token == "" {
		return kms.NewKeyManagementRESTClient(ctx, endpoint, option.WithoutAuthentication())
	}
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: wanted.Token})
	return kms.NewKeyManagementRESTClient(ctx, endpoint, option.WithTokenSource(token))
}

// run calls a method by name, such as "get_crypto_key".
func run(client *kms.KeyManagementClient, wanted call) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if wanted.Transport == "grpc" && wanted.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+wanted.Token)
	}
	words := strings.Split(wanted.Method, "_")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	method := reflect.ValueOf(client).MethodByName(strings.Join(words, ""))
	if !method.IsValid() {
		return refused(fmt.Errorf("the client has no method for %s", wanted.Method))
	}
	request := reflect.New(method.Type().In(1).Elem())
	message, isMessage := request.Interface().(proto.Message)
	if !isMessage {
		return refused(fmt.Errorf("%s takes no message", wanted.Method))
	}
	if err := protojson.Unmarshal(wanted.Request, message); err != nil {
		return refused(err)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), request})
	if len(results) == 1 {
		return collect(results[0])
	}
	if err, isError := results[1].Interface().(error); isError {
		return refused(err)
	}
	return answered(results[0].Interface())
}

// collect reads all rows from an iterator.
func collect(rows reflect.Value) outcome {
	answers := []any{}
	for {
		next := rows.MethodByName("Next").Call(nil)
		if err, isError := next[1].Interface().(error); isError {
			if errors.Is(err, iterator.Done) {
				return outcome{Answer: answers}
			}
			return refused(err)
		}
		row := answered(next[0].Interface())
		if row.Error != nil {
			return row
		}
		answers = append(answers, row.Answer)
	}
}

func answered(answer any) outcome {
	message, isMessage := answer.(proto.Message)
	if !isMessage {
		return refused(fmt.Errorf("%T is not a message", answer))
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		return refused(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return refused(err)
	}
	return outcome{Answer: json.RawMessage(compact.Bytes())}
}

func refused(err error) outcome {
	failed := failure{Class: fmt.Sprintf("%T", err), Message: err.Error()}
	var apiError *apierror.APIError
	if errors.As(err, &apiError) {
		failed.Reason, failed.Domain, failed.Metadata = apiError.Reason(), apiError.Domain(), apiError.Metadata()
		if status := apiError.GRPCStatus(); status != nil {
			failed.Code = status.Code().String()
		}
	}
	return outcome{Error: &failed}
}
