// Command apiserver uses a KMS v2 plugin the way a Kubernetes API server does, with the code of k8s.io/apiserver.
//
// It reads one command per line from standard input and writes one outcome per line, both as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"
)

// order is a command. Which fields it needs depends on its name.
type order struct {
	// Order is "load", "health", "store" or "read".
	Order string `json:"order"`
	// Path is the path of an encryption configuration.
	Path string `json:"path"`
	// Data is an object, as the API server or as etcd has it.
	Data []byte `json:"data"`
}

// outcome is a command's outcome.
type outcome struct {
	Error   string `json:"error,omitempty"`
	Data    []byte `json:"data,omitempty"`
	Stale   bool   `json:"stale"`
	Healthz string `json:"healthz,omitempty"`
}

// apiServer is the part of an API server between its storage and its plugins.
type apiServer struct {
	config *encryptionconfig.EncryptionConfiguration
}

// where is the etcd key, to which an object's ciphertext is bound.
var where = value.DefaultContext("/registry/secrets/default/test")

func main() {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	server := &apiServer{}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		result, err := server.do(context.Background(), o)
		if err != nil {
			result = outcome{Error: err.Error()}
		}
		if err := out.Encode(result); err != nil {
			os.Exit(1)
		}
	}
}

func (s *apiServer) do(ctx context.Context, o order) (outcome, error) {
	switch o.Order {
	case "load":
		config, err := encryptionconfig.LoadEncryptionConfig(ctx, o.Path, false, "test")
		s.config = config
		return outcome{}, err
	case "health":
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
		if err != nil {
			return outcome{}, err
		}
		for _, check := range s.config.HealthChecks {
			if err := check.Check(request); err != nil {
				return outcome{}, err
			}
		}
		return outcome{Healthz: "ok"}, nil
	case "store":
		data, err := s.secrets().TransformToStorage(ctx, o.Data, where)
		return outcome{Data: data}, err
	case "read":
		data, stale, err := s.secrets().TransformFromStorage(ctx, o.Data, where)
		return outcome{Data: data, Stale: stale}, err
	}
	return outcome{}, fmt.Errorf("unknown order %q", o.Order)
}

func (s *apiServer) secrets() value.Transformer {
	return s.config.Transformers[schema.GroupResource{Resource: "secrets"}]
}
