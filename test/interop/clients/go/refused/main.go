// Command refused makes gRPC calls with grpc-go and prints the outcome of each.
//
// It reads one call per line from standard input and writes one outcome per line, both as JSON. Messages are
// bytes, so no stubs are needed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// call is what to send.
type call struct {
	Authority       string            `json:"authority"`
	Path            string            `json:"path"`
	Headers         map[string]string `json:"headers"`
	Message         []byte            `json:"message"`
	ClientStreaming bool              `json:"clientStreaming"`
	ServerStreaming bool              `json:"serverStreaming"`
	Gzip            bool              `json:"gzip"`
}

// outcome is how a call ended, as the library reports it.
type outcome struct {
	Messages   int               `json:"messages"`
	Code       uint32            `json:"code"`
	Message    string            `json:"message"`
	Reason     string            `json:"reason"`
	Domain     string            `json:"domain"`
	Metadata   map[string]string `json:"metadata"`
	Fields     []string          `json:"fields"`
	RetryAfter string            `json:"retryAfter"`
}

// rawCodec passes bytes through. Its name is the subtype of the content type.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	bytes, isBytes := v.(*[]byte)
	if !isBytes {
		return nil, fmt.Errorf("cannot marshal %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*bytes)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	bytes, isBytes := v.(*[]byte)
	if !isBytes {
		return fmt.Errorf("cannot unmarshal into %T", v)
	}
	*bytes = data.Materialize()
	return nil
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	results := json.NewEncoder(os.Stdout)
	connections := map[string]*grpc.ClientConn{}
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var wanted call
		if err == nil {
			err = json.Unmarshal(line, &wanted)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		connection, isOpen := connections[wanted.Authority]
		if !isOpen {
			connection, err = grpc.NewClient("passthrough:///"+wanted.Authority,
				grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			connections[wanted.Authority] = connection
		}
		if err := results.Encode(run(connection, wanted)); err != nil {
			os.Exit(1)
		}
	}
}

func run(connection *grpc.ClientConn, wanted call) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(wanted.Headers))
	options := []grpc.CallOption{grpc.ForceCodecV2(rawCodec{})}
	if wanted.Gzip {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	if !wanted.ClientStreaming && !wanted.ServerStreaming {
		var answer []byte
		err := connection.Invoke(ctx, wanted.Path, &wanted.Message, &answer, options...)
		if err == nil {
			return describe(1, nil)
		}
		return describe(0, err)
	}
	return describe(runStream(ctx, connection, wanted, options))
}

// runStream returns the number of messages received, and the error that ended the stream.
func runStream(ctx context.Context, connection *grpc.ClientConn, wanted call, options []grpc.CallOption) (int, error) {
	description := &grpc.StreamDesc{
		ClientStreams: wanted.ClientStreaming,
		ServerStreams: wanted.ServerStreaming,
	}
	stream, err := connection.NewStream(ctx, description, wanted.Path, options...)
	if err != nil {
		return 0, err
	}
	// After io.EOF, receiving returns the status.
	if err := stream.SendMsg(&wanted.Message); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if err := stream.CloseSend(); err != nil {
		return 0, err
	}
	for messages := 0; ; messages++ {
		var answer []byte
		err := stream.RecvMsg(&answer)
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return messages, err
		}
		if !wanted.ServerStreaming {
			return 1, nil
		}
	}
}

func describe(messages int, err error) outcome {
	failure := status.Convert(err)
	result := outcome{Messages: messages, Code: uint32(failure.Code()), Message: failure.Message(), Fields: []string{}}
	for _, detail := range failure.Details() {
		switch typed := detail.(type) {
		case *errdetails.ErrorInfo:
			result.Reason, result.Domain, result.Metadata = typed.Reason, typed.Domain, typed.Metadata
		case *errdetails.BadRequest:
			for _, violation := range typed.FieldViolations {
				result.Fields = append(result.Fields, violation.Field)
			}
		case *errdetails.RetryInfo:
			result.RetryAfter = typed.RetryDelay.AsDuration().String()
		}
	}
	return result
}
